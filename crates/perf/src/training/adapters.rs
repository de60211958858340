//! Parameters of low-rank adapters (LoRA, arXiv 2106.09685), from the shapes of the adapted matrices.

use crate::arch::{Architecture, Attention};

/// Matrices of a frozen model that have low-rank adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Adapters {
    /// None.
    #[default]
    None,
    /// The projections of attention.
    Attention,
    /// Every matrix of a block: attention, linear mixers, MLPs and experts. Like `all-linear` of PEFT with experts that
    /// are separate layers, each routed expert has its own adapters; router and embeddings have none.
    All,
}

/// Parameters of the adapters of a whole model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdapterParams {
    /// Of all matrices except routed experts.
    pub dense: f64,
    /// Of routed experts.
    pub experts: f64,
}

/// Number of trained parameters of a model, given their `shares` as in [`super::TrainingInput::trained`] and
/// [`super::TrainingInput::trained_experts`].
#[must_use]
pub fn trained_params(a: &Architecture, adapters: Adapters, [dense, experts]: [f64; 2]) -> f64 {
    match adapters {
        Adapters::None => dense * a.params(),
        Adapters::Attention | Adapters::All => dense * a.dense_params() + experts * a.moe_layers() * a.expert_params(),
    }
}

impl Adapters {
    /// Parameters of adapters of `rank`: rank × (input + output width) for each adapted matrix (arXiv 2106.09685,
    /// section 4.1).
    #[must_use]
    pub fn params(self, a: &Architecture, rank: f64) -> AdapterParams {
        if self == Adapters::None || a.convolutions.is_some() {
            return AdapterParams { dense: 0.0, experts: 0.0 };
        }
        // Blocks of cross attention, and of an encoder.
        let crossed = if a.encoder_layers > 0.0 { a.attention_layers() + a.encoder_layers } else { 0.0 };
        let attention = (a.attention_layers() + crossed) * attention_widths(a);
        if self == Adapters::Attention {
            return AdapterParams { dense: rank * attention, experts: 0.0 };
        }
        let mlp = |width: f64, ffn: f64| if ffn > 0.0 { a.mlp_matrices() * (width + ffn) } else { 0.0 };
        let hidden = f64::from(a.hidden);
        let mixers = a.linear.map_or(0.0, |linear| {
            a.linear_layers() * (2.0 * hidden + linear.input_projection_width() + linear.inner_width())
        });
        let moe = a.moe_layers();
        let dense = (a.mlp_layers() - moe + a.encoder_layers) * mlp(hidden, f64::from(a.ffn));
        let shared = moe * mlp(hidden, f64::from(a.shared_ffn));
        let experts = moe * a.experts * mlp(a.expert_width(), f64::from(a.moe_ffn));
        AdapterParams { dense: rank * (attention + mixers + dense + shared), experts: rank * experts }
    }
}

/// Sum of input and output widths of the matrices of one layer's attention.
fn attention_widths(a: &Architecture) -> f64 {
    let hidden = a.hidden;
    match a.attention {
        // Queries; keys and values; output.
        Attention::Grouped => (hidden + a.q_width()) + (2.0 * hidden + a.kv_width()) + (a.v_width() + hidden),
        Attention::Latent { q_rank, kv_rank, nope, rope, value, direct, output } => {
            let queries = q_rank.map_or(hidden + a.q_width(), |rank| (hidden + rank) + (rank + a.q_width()));
            let down = hidden + kv_rank + rope;
            let up = if direct { 0.0 } else { kv_rank + a.heads * (nope + value) };
            let out = output.map_or(a.v_width() + hidden, |x| {
                let ranks = x.rank * x.groups;
                (a.v_width() / x.groups + ranks) + (ranks + hidden)
            });
            queries + down + up + out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_core::count::Count;

    #[test]
    fn adapter_parameters_follow_from_the_shapes_of_the_matrices() {
        // PEFT reports "trainable params: 4,194,304 || all params: 6,742,609,920" for Llama 2 7B with r = 8 on q_proj
        // and v_proj; q, k, v and o have twice as many.
        let llama = Architecture::default();
        assert_eq!(Adapters::Attention.params(&llama, 8.0).dense, 2.0 * 4_194_304.0);
        // Seven matrices of a layer, each 16 × (input + output width).
        let all = 16.0 * 32.0 * (8.0 * 4096.0 + 3.0 * (4096.0 + 11008.0));
        assert_eq!(Adapters::All.params(&llama, 16.0), AdapterParams { dense: all, experts: 0.0 });
        assert_eq!(Adapters::None.params(&llama, 16.0).dense, 0.0);
    }

    #[test]
    fn each_routed_expert_has_its_own_adapters() {
        // Mixtral 8x7B.
        let mixtral = Architecture {
            kv_heads: Count::new(8),
            experts: Count::new(8),
            top_k: Count::new(2),
            moe_ffn: Count::new(14336),
            ..Architecture::default()
        };
        let of = Adapters::All.params(&mixtral, 16.0);
        assert_eq!(of.experts, 16.0 * 32.0 * 8.0 * 3.0 * (4096.0 + 14336.0));
        assert_eq!(of.dense, Adapters::Attention.params(&mixtral, 16.0).dense);
        assert_eq!(Adapters::Attention.params(&mixtral, 16.0).experts, 0.0);
    }
}
