//! KV cache blocks (Kwon et al., *PagedAttention*, arXiv 2309.06180), and the prefix cache over them. Pieces of
//! finished prompts stay cached until memory is needed. Eviction is by least recent use, ends of prefixes before
//! beginnings.

use std::collections::HashMap;

const NO_PIECE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Piece {
    name: u64,
    users: u32,
    before: u32,
    after: u32,
}

/// KV cache blocks of one replica.
#[derive(Debug, Clone)]
pub(super) struct KvPool {
    total: u64,
    free: u64,
    /// Blocks allocated so far, in total.
    taken: u64,
    piece_blocks: u64,
    pieces: Vec<Piece>,
    vacant: Vec<u32>,
    by_name: HashMap<u64, u32>,
    /// List of unused pieces, in order of eviction.
    first: u32,
    last: u32,
    unused: u64,
}

impl KvPool {
    /// Creates a pool of `total` blocks, with `piece_blocks` blocks per named piece.
    pub(super) fn new(total: u64, piece_blocks: u64) -> Self {
        KvPool {
            total,
            free: total,
            taken: 0,
            piece_blocks: piece_blocks.max(1),
            pieces: Vec::new(),
            vacant: Vec::new(),
            by_name: HashMap::new(),
            first: NO_PIECE,
            last: NO_PIECE,
            unused: 0,
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Blocks in use by sequences, without cached blocks that no sequence uses.
    pub(super) fn used(&self) -> u64 {
        self.total - self.free - self.unused * self.piece_blocks
    }

    /// Allocates `blocks`, evicting unused pieces if necessary. Returns `false` without allocating if there are too
    /// few.
    pub(super) fn allocate(&mut self, blocks: u64) -> bool {
        if blocks > self.free + self.unused * self.piece_blocks {
            return false;
        }
        while self.free < blocks {
            self.drop_first();
        }
        self.free -= blocks;
        self.taken += blocks;
        true
    }

    /// Total number of blocks allocated so far. The content of a freed block survives until it is allocated again.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Frees `blocks`.
    pub(super) fn free(&mut self, blocks: u64) {
        self.free += blocks;
    }

    /// Finds the longest cached prefix of `names`, marks its pieces as used, and returns their number.
    pub(super) fn hold(&mut self, names: &[u64]) -> u32 {
        let mut held = 0;
        for name in names {
            let Some(&index) = self.by_name.get(name) else { break };
            self.use_piece(index);
            held += 1;
        }
        held
    }

    /// Adds the computed pieces `names`, whose blocks the caller has allocated, to the cache and marks them as used.
    /// Stops at the first piece that another sequence has added in the meantime. Returns the number of pieces added.
    pub(super) fn keep(&mut self, names: &[u64]) -> u32 {
        let mut kept = 0;
        for &name in names {
            if self.by_name.contains_key(&name) {
                break;
            }
            let piece = Piece { name, users: 1, before: NO_PIECE, after: NO_PIECE };
            let index = match self.vacant.pop() {
                Some(index) => index,
                None => {
                    self.pieces.push(piece);
                    (self.pieces.len() - 1) as u32
                }
            };
            if let Some(place) = self.pieces.get_mut(index as usize) {
                *place = piece;
            }
            self.by_name.insert(name, index);
            kept += 1;
        }
        kept
    }

    /// Releases used pieces.
    pub(super) fn release(&mut self, names: &[u64]) {
        for name in names.iter().rev() {
            let Some(&index) = self.by_name.get(name) else { continue };
            let Some(piece) = self.pieces.get_mut(index as usize) else { continue };
            piece.users = piece.users.saturating_sub(1);
            if piece.users == 0 {
                (piece.before, piece.after) = (self.last, NO_PIECE);
                let before = self.last;
                self.last = index;
                match self.pieces.get_mut(before as usize) {
                    Some(neighbor) => neighbor.after = index,
                    None => self.first = index,
                }
                self.unused += 1;
            }
        }
    }

    fn use_piece(&mut self, index: u32) {
        let Some(piece) = self.pieces.get_mut(index as usize) else { return };
        piece.users += 1;
        if piece.users == 1 {
            let (before, after) = (piece.before, piece.after);
            self.unlink(before, after);
        }
    }

    fn unlink(&mut self, before: u32, after: u32) {
        match self.pieces.get_mut(before as usize) {
            Some(neighbor) => neighbor.after = after,
            None => self.first = after,
        }
        match self.pieces.get_mut(after as usize) {
            Some(neighbor) => neighbor.before = before,
            None => self.last = before,
        }
        self.unused -= 1;
    }

    fn drop_first(&mut self) {
        let index = self.first;
        let Some(&Piece { name, before, after, .. }) = self.pieces.get(index as usize) else { return };
        self.unlink(before, after);
        self.by_name.remove(&name);
        self.vacant.push(index);
        self.free += self.piece_blocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_stays_cached_until_memory_is_needed() {
        let mut pool = KvPool::new(10, 2);
        assert!(pool.allocate(6));
        assert_eq!(pool.keep(&[1, 2, 3]), 3);
        pool.release(&[1, 2, 3]);
        assert_eq!(pool.used(), 0);
        assert_eq!(pool.hold(&[1, 2, 9]), 2);
        assert_eq!(pool.used(), 4);
        pool.release(&[1, 2]);
        // Six blocks: the four free ones, and those of piece 3, which was used least recently.
        assert!(pool.allocate(6));
        assert_eq!(pool.hold(&[1, 2, 3]), 2);
        assert!(!pool.allocate(1));
        pool.release(&[1, 2]);
        // Ends of prefixes are evicted before beginnings.
        assert!(pool.allocate(2));
        assert_eq!(pool.hold(&[1, 2]), 1);
        pool.release(&[1]);
        pool.free(8);
        assert!(pool.allocate(10));
        assert_eq!(pool.hold(&[1]), 0);
        assert_eq!((pool.used(), pool.total()), (10, 10));
    }

    #[test]
    fn blocks_cached_by_another_sequence_are_not_cached_twice() {
        let mut pool = KvPool::new(10, 1);
        assert!(pool.allocate(4));
        assert_eq!(pool.keep(&[1, 2]), 2);
        assert_eq!(pool.keep(&[1, 2]), 0);
        pool.release(&[1, 2]);
        assert_eq!(pool.used(), 2);
        pool.free(2);
        assert_eq!(pool.used(), 0);
    }
}
