//! Values from left to right.

use crate::tree::Tree;

pub struct Iter<'a> {
    pending: Vec<&'a Tree>,
    leaf: &'a [u64],
    remaining: usize,
}

impl<'a> Iter<'a> {
    pub(crate) fn new(root: &'a Tree, length: usize) -> Self {
        Self { pending: vec![root], leaf: &[], remaining: length }
    }

    /// The next leaf's values.  What stands behind the last value is never reached.
    fn descend(&mut self) -> &'a [u64] {
        while let Some(tree) = self.pending.pop() {
            match tree {
                Tree::Branch { left, right, .. } => {
                    self.pending.push(right);
                    self.pending.push(left);
                }
                Tree::Leaf { values, .. } => return values,
                Tree::Zero => {}
            }
        }
        &[]
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a u64;

    fn next(&mut self) -> Option<&'a u64> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        if self.leaf.is_empty() {
            self.leaf = self.descend();
        }
        let (first, rest) = self.leaf.split_first()?;
        self.leaf = rest;
        Some(first)
    }
}
