"""Who looks at the pages: sessions of readers and operators, and the checks of forms that change something."""
