//! Plans of configurations of the predecessor simulator.

use super::options::Options;
use super::plan::{Plan, Work, inapplicable_options, too_many, training_work};
use super::words::Window;
use super::{Problems, RunsProgress};
use atlas_catalog::{Catalog, datasheet};
use atlas_config::Mode;
use atlas_legacy::simulator::Predecessor;
use atlas_perf::accelerator::Precision;
use atlas_perf::constants::Constants;
use atlas_sim::training::{Hosts, Input};

impl Plan {
    /// Creates the plan of a configuration.
    ///
    /// # Errors
    ///
    /// If the model is unknown, the network cannot be built, or serving options are set.
    pub fn of_predecessor(
        config: &Predecessor,
        catalog: &Catalog,
        options: &Options,
        window: Option<Window>,
        gauge: &RunsProgress,
    ) -> Result<Plan, Problems> {
        let mut problems = inapplicable_options(options, Mode::Training);
        let system = config.system(catalog).map_err(|problem| Problems(vec![problem]))?;
        let bytes = config.model.total_parameters.unwrap_or_else(|| system.arch.params()) * system.grad_bytes;
        // The buckets of PyTorch's data parallelism hold 25 MB each (`bucket_cap_mb`).
        let buckets = options.buckets.unwrap_or(((bytes / 25e6).ceil().clamp(1.0, 256.0)) as u32);
        let mut options = options.clone();
        options.buckets = Some(buckets);
        options.steps = options.steps.or(Some(config.training.num_iterations.clamp(1.0, 1e6) as u32));
        let hosts = Hosts { devices: system.accelerators as u32, per_host: config.hardware.num_gpus_per_node as u32 };
        let mut work = training_work(Input::of(&system, &Constants::default()), hosts, &options, window);
        problems.extend(too_many(&work));
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        let one = gauge.run(|progress| config.reduction(bytes / f64::from(buckets), progress))?;
        work.input.reduction = Some(one * f64::from(buckets));
        let mut notes = vec![format!(
            "network_bandwidth_gbps is read as gigabytes per second, as the predecessor document means it: {} GB/s a link",
            config.hardware.network_bandwidth_gbps
        )];
        if !config.model.layers.is_empty() {
            notes.push(format!(
                "{} layers as listed, FLOPs and activations of one sample each: products run at the rates of ResNet-50's \
                 convolutions, and traffic is to activations as ResNet-50's is",
                config.model.layers.len()
            ));
        }
        if !config.training.mixed_precision {
            notes.push(
                "without mixed precision, products are in TF32 where the accelerator has it, else in fp32".to_owned(),
            );
        }
        let (device, known) = config.device(catalog);
        if let Some(sheet) = &known {
            let own = datasheet::accelerator(sheet).peak(Precision::Bf16);
            if device.peak(Precision::Bf16) > 1.001 * own {
                notes.push(format!(
                    "compute_tflops {} is above the {:.0} TFLOP/s of {}: it is used, with as much more power",
                    config.hardware.compute_tflops,
                    own * 1e-12,
                    sheet.id
                ));
            }
        }
        if known.is_none() {
            notes.push(format!(
                "`{}` is no accelerator of the catalog: what the file does not state, memory bandwidth above all, is an \
                 A100's",
                config.hardware.gpu_model
            ));
        }
        let sheet = config.device(catalog).1;
        let price = sheet.as_ref().and_then(|sheet| {
            let prices = catalog.prices_of(&sheet.id).into_iter();
            prices.min_by(|a, b| a.usd_per_accelerator_hour().total_cmp(&b.usd_per_accelerator_hour()))
        });
        let usd_per_hour = price.map(|price| {
            let each = price.usd_per_accelerator_hour();
            notes.push(format!("{each:.2} $/h an accelerator: {}, {}", price.provider, price.date));
            each * config.accelerators()
        });
        Ok(Plan {
            usd_per_hour,
            name: config.name.clone(),
            work: Work::Training(Box::new(work)),
            seed: options.seed(),
            replications: options.replications(),
            notes,
        })
    }
}
