//! KV cache of the sequences of a replica.

use super::Replica;
use crate::serving::engine::Engine;
use crate::serving::request::{Request, first_names, used_pieces, whole_pieces};
use crate::serving::workload::Workload;

impl Replica {
    /// Looks up the prompt in the prefix cache. At least one token is always computed, because its output is needed.
    pub(super) fn find_prefix(&mut self, r: &mut Request, workload: &Workload<'_>, e: &Engine) {
        let found = if e.cached {
            r.shared = self.kv.hold(whole_pieces(workload, r));
            r.shared.saturating_mul(e.piece_tokens)
        } else {
            (e.share_found * f64::from(r.demand.isl)) as u32
        };
        // Freed blocks are reused in the order in which they were freed, the last blocks of a sequence first.
        let (left, taken) = r.left;
        let still_there = left.saturating_sub(self.kv.taken() - taken) as u32 * e.block_size;
        let found = found.max(still_there);
        r.computed = if e.prefilled && r.emitted == 0 { r.target } else { found.min(r.target - 1) };
    }

    /// Allocates blocks for `length` tokens of a sequence; `false` if memory is full.
    pub(super) fn grow(&mut self, r: &mut Request, length: u32, e: &Engine) -> bool {
        let covered = length.div_ceil(e.block_size) * e.block_size;
        let own =
            e.blocks(e.kv_tokens(r.demand.isl, covered)).saturating_sub(r.shared * (e.piece_tokens / e.block_size));
        let more = own.saturating_sub(r.blocks);
        if !self.kv.allocate(u64::from(more)) {
            return false;
        }
        r.blocks += more;
        r.covered = covered;
        true
    }

    /// Frees the blocks of a sequence.
    pub(super) fn free(&mut self, r: &mut Request, workload: &Workload<'_>) {
        self.kv.free(u64::from(r.blocks));
        self.kv.release(used_pieces(workload, r));
        (r.blocks, r.shared, r.covered) = (0, 0, 0);
    }

    /// Adds the pieces of a computed prompt to the prefix cache.
    pub(super) fn keep_prefix(&mut self, r: &mut Request, workload: &Workload<'_>, e: &Engine) {
        let blocks = e.piece_tokens / e.block_size;
        let names = whole_pieces(workload, r).get(r.shared as usize..).unwrap_or(&[]);
        let most = (r.blocks / blocks.max(1)) as usize;
        let kept = self.kv.keep(names.get(..most.min(names.len())).unwrap_or(&[]));
        r.blocks -= kept * blocks;
        r.shared += kept;
    }

    /// Allocates KV cache for a sequence prefilled by another pool; `false` if the replica is full.
    pub(in crate::serving) fn allocate_transferred(&mut self, r: &mut Request, e: &Engine) -> bool {
        if self.running.len() + self.waiting.len() + self.in_transfer >= e.max_num_seqs {
            return false;
        }
        let there = (r.blocks, r.shared, r.covered);
        (r.blocks, r.shared, r.covered) = (0, 0, 0);
        let length = if e.reserve_output { r.demand.isl + r.demand.osl } else { r.demand.isl + e.verified_tokens };
        if !self.grow(r, length, e) {
            (r.blocks, r.shared, r.covered) = there;
            return false;
        }
        r.remote = (there.0, there.1);
        self.in_transfer += 1;
        true
    }

    /// Frees the blocks of a sequence on the replica from which it was transferred.
    pub(in crate::serving) fn free_remote_blocks(&mut self, r: &mut Request, workload: &Workload<'_>) {
        let (blocks, shared) = std::mem::take(&mut r.remote);
        self.kv.free(u64::from(blocks));
        self.kv.release(first_names(workload, r, shared));
    }
}
