//! The five examples of the predecessor simulator.

use super::{Hardware, Model, Network, Predecessor, Topology, Training};

impl Predecessor {
    /// Configuration of an example: 1 a basic run, 2 a custom configuration, 3 a scaling study, 4 a study of patterns,
    /// 5 a configuration from a file.
    #[must_use]
    pub fn example(number: u8) -> Option<Predecessor> {
        let base = Predecessor::default();
        let hardware = Hardware {
            gpu_model: "H100".to_owned(),
            compute_tflops: 989.0,
            network_bandwidth_gbps: 200.0,
            ..base.hardware.clone()
        };
        match number {
            1 => Predecessor::preset("small"),
            2 => Some(Predecessor {
                name: "custom_experiment".to_owned(),
                hardware,
                model: Model { num_layers: 32.0, hidden_size: 4096.0, ..base.model },
                training: Training { batch_size_per_gpu: 8.0, num_nodes: 8.0, ..base.training },
                ..base
            }),
            3 | 4 => Predecessor::preset("medium"),
            5 => Some(Predecessor {
                name: "my_experiment".to_owned(),
                description: "Large-scale LLM training".to_owned(),
                hardware,
                model: Model {
                    num_layers: 48.0,
                    hidden_size: 2048.0,
                    num_attention_heads: 32.0,
                    sequence_length: 2048.0,
                    ..base.model
                },
                training: Training { batch_size_per_gpu: 4.0, num_nodes: 16.0, mixed_precision: true, ..base.training },
                network: Network { topology_type: Topology::Torus, ..base.network },
                ..base
            }),
            _ => None,
        }
    }
}
