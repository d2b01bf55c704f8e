"""Reports for pages: worked out in processes of their own, bounded in number, time and memory, and kept for a while."""
