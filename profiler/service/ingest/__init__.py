"""How captures and debug files of agents come in: received in parts, checked, filed once, and removed again."""
