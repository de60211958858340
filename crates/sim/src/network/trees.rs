//! Collectives in chunks along trees, along chains and through a switch.

use super::transfers::Builder;

/// A rooted tree over ranks.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    parent: Vec<Option<u32>>,
    /// Ranks from the root down: parents before children.
    down: Vec<u32>,
}

impl Tree {
    /// Builds the in-order binary tree: ranks with k trailing zero bits are k levels above the leaves (NCCL's btree).
    pub(super) fn new(ranks: u32) -> Self {
        Tree::of((0..ranks).map(|rank| btree_parent(rank, ranks)).collect())
    }

    /// Builds two trees such that every rank is a leaf in at least one. The second is the first, mirrored for even
    /// numbers of ranks and shifted by one for odd numbers (NCCL's dtree).
    pub(super) fn pair(ranks: u32) -> [Tree; 2] {
        let turned = |rank: u32| if ranks.is_multiple_of(2) { ranks - 1 - rank } else { (rank + ranks - 1) % ranks };
        let back = |rank: u32| if ranks.is_multiple_of(2) { ranks - 1 - rank } else { (rank + 1) % ranks };
        let second = (0..ranks).map(|rank| btree_parent(turned(rank), ranks).map(back)).collect();
        [Tree::new(ranks), Tree::of(second)]
    }

    fn of(parent: Vec<Option<u32>>) -> Self {
        let depth = |mut rank: u32| {
            let mut levels = 0;
            while let Some(above) = parent.get(rank as usize).copied().flatten() {
                rank = above;
                levels += 1;
            }
            levels
        };
        let mut down: Vec<u32> = (0..parent.len() as u32).collect();
        down.sort_by_key(|&rank| depth(rank));
        Tree { parent, down }
    }

    pub(super) fn parent(&self, rank: u32) -> Option<u32> {
        self.parent.get(rank as usize).copied().flatten()
    }

    /// Number of levels between the root and the deepest rank.
    #[cfg(test)]
    pub(super) fn depth(&self) -> u32 {
        let mut rank = self.down.last().copied().unwrap_or(0);
        let mut levels = 0;
        while let Some(above) = self.parent(rank) {
            rank = above;
            levels += 1;
        }
        levels
    }
}

/// Returns the parent of `rank`, or `None` for the root, rank 0. If the regular parent is beyond the last rank, `rank`
/// with its lowest set bit cleared replaces it.
fn btree_parent(rank: u32, ranks: u32) -> Option<u32> {
    if rank == 0 {
        return None;
    }
    let bit = 1 << rank.trailing_zeros();
    let above = (rank ^ bit) | (bit << 1);
    Some(if above >= ranks { rank ^ bit } else { above })
}

/// Sends chunks up the tree (if `reduce`) and down again. A chunk goes down as soon as it is complete at the root.
pub(super) fn run(b: &mut Builder, tree: &Tree, bytes: f64, chunks: u32, reduce: bool) {
    let piece = bytes / f64::from(chunks);
    let ranks = tree.parent.len();
    // The last message on the edge of each rank to its parent, in each direction.
    let (mut last_up, mut last_down) = (vec![u32::MAX; ranks], vec![u32::MAX; ranks]);
    let mut arrived: Vec<Vec<u32>> = vec![Vec::with_capacity(3); ranks];
    let edge = |list: &[u32], rank: u32| list.get(rank as usize).copied().unwrap_or(u32::MAX);
    for _ in 0..chunks {
        arrived.iter_mut().for_each(Vec::clear);
        if reduce {
            for &rank in tree.down.iter().rev() {
                let Some(parent) = tree.parent(rank) else { continue };
                let message = b.message(rank, parent, piece);
                for &child in arrived.get(rank as usize).into_iter().flatten() {
                    b.after_arrival(child, message);
                }
                b.after_leaving(edge(&last_up, rank), message);
                note(&mut last_up, rank, message);
                if let Some(list) = arrived.get_mut(parent as usize) {
                    list.push(message);
                }
            }
        }
        // Inner ranks wait for the chunk from their parent, the root only for the chunks from its children.
        for &rank in &tree.down {
            let Some(parent) = tree.parent(rank) else { continue };
            let message = b.message(parent, rank, piece);
            if tree.parent(parent).is_none() {
                for &child in arrived.get(parent as usize).into_iter().flatten() {
                    b.after_arrival(child, message);
                }
            } else {
                // Parents precede their children in `tree.down`, so the last message down to the parent is this chunk.
                b.after_arrival(edge(&last_down, parent), message);
            }
            b.after_leaving(edge(&last_down, rank), message);
            note(&mut last_down, rank, message);
        }
    }
}

fn note(list: &mut [u32], rank: u32, message: u32) {
    if let Some(last) = list.get_mut(rank as usize) {
        *last = message;
    }
}

/// Sends chunks along a chain.
pub(super) fn chain(b: &mut Builder, order: &[u32], bytes: f64, chunks: u32) {
    let piece = bytes / f64::from(chunks);
    let mut last = vec![u32::MAX; order.len()];
    for _ in 0..chunks {
        let mut before = u32::MAX;
        for (hop, pair) in order.windows(2).enumerate() {
            let &[from, to] = pair else { continue };
            let message = b.message(from, to, piece);
            b.after_arrival(before, message);
            b.after_leaving(last.get(hop).copied().unwrap_or(u32::MAX), message);
            note(&mut last, hop as u32, message);
            before = message;
        }
    }
}

/// Sends chunks to the switch from all ranks (if `reduce`) or from the first, and from there to all other ranks.
pub(super) fn in_switch(b: &mut Builder, ranks: u32, bytes: f64, chunks: u32, reduce: bool) {
    let piece = bytes / f64::from(chunks);
    let switch = ranks;
    let mut last_up = vec![u32::MAX; ranks as usize];
    let mut last_down = last_up.clone();
    let mut up = Vec::with_capacity(ranks as usize);
    for _ in 0..chunks {
        up.clear();
        for rank in 0..if reduce { ranks } else { 1 } {
            let message = b.message(rank, switch, piece);
            b.after_leaving(last_up.get(rank as usize).copied().unwrap_or(u32::MAX), message);
            note(&mut last_up, rank, message);
            up.push(message);
        }
        // The switch sends once it has received from all: an empty message to itself joins their dependencies.
        let sum = b.message(switch, switch, 0.0);
        up.iter().for_each(|&message| b.after_arrival(message, sum));
        for rank in if reduce { 0 } else { 1 }..ranks {
            let message = b.message(switch, rank, piece);
            b.after_arrival(sum, message);
            b.after_leaving(last_down.get(rank as usize).copied().unwrap_or(u32::MAX), message);
            note(&mut last_down, rank, message);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn double_tree_is_shallow_and_each_rank_is_inner_in_at_most_one() {
        for ranks in 2..70 {
            let pair = Tree::pair(ranks);
            let mut inner = vec![0; ranks as usize];
            for tree in &pair {
                assert_eq!((0..ranks).filter(|&r| tree.parent(r).is_none()).count(), 1);
                assert!(tree.depth() <= ranks.ilog2() + 1, "{ranks}: {}", tree.depth());
                let mut children = vec![0u32; ranks as usize];
                (0..ranks).filter_map(|r| tree.parent(r)).for_each(|p| children[p as usize] += 1);
                assert!(children.iter().all(|&c| c <= 2));
                inner.iter_mut().zip(&children).for_each(|(sum, &c)| *sum += u32::from(c > 1));
            }
            assert!(inner.iter().all(|&count| count <= 1), "{ranks}: {inner:?}");
        }
    }
}
