//! Benchmarks that run the engine in-process: server and client in one command.

use super::argv::Args;
use super::collect::{Collector, Lookup, read_referenced_files};
use super::fields::ReadFields;
use super::names;
use super::shell::Command;
use super::tools::bench;
use super::tools::serving::Engine;
use super::variables::visible_devices;
use crate::import::place::Place;
use crate::import::{Field, Kind};

impl Collector {
    /// Reads an engine's offline benchmark, which needs no server.
    pub(super) fn offline(&mut self, engine: Engine, name: &'static str, args: &Args, cmd: &Command) {
        let mut out = ReadFields::default();
        let mut client = ReadFields::default();
        for f in &args.flags {
            let key = names::snake(&f.name);
            let sends = match (engine, f.name.as_str(), key.as_str()) {
                // The batch size is the number of concurrent requests, not a limit of the engine.
                (Engine::Vllm | Engine::Sglang, _, "batch_size") => {
                    bench::counts(Field::Concurrency, &f.node, &mut client)
                }
                (Engine::LlamaCpp, "-p", _) => bench::counts(Field::Isl, &f.node, &mut client),
                (Engine::LlamaCpp, "-n", _) => bench::counts(Field::Osl, &f.node, &mut client),
                (Engine::LlamaCpp, "-r" | "-o" | "-d" | "-pg", _) => true,
                (_, _, "model" | "model_path") => false,
                _ => bench::is_known(&key) && bench::flag(&key, &f.node, &mut client),
            };
            if !sends {
                engine.flag(&f.name, &f.node, &mut out);
            }
        }
        visible_devices(cmd, &mut out);
        engine.finish(&mut out);
        out.fields.set(Field::Kind, Kind::Benchmark, cmd.line);
        out.fields.set(Field::Framework, engine.framework(), cmd.line);
        out.fields.set(Field::Launcher, name, cmd.line);
        self.servers.push((engine, out));
        if !client.fields.is_empty() {
            self.clients.push((name, client));
        }
    }

    /// Reads `trtllm-bench`, which is server and client in one.
    pub(super) fn trtllm_bench(&mut self, args: &Args, line: Place, files: Lookup<'_>) {
        let mut out = ReadFields::default();
        let plain = Args { positional: Vec::new(), ..args.clone() };
        Engine::Trtllm.command(&plain, &mut out);
        read_referenced_files(&mut out, files, |n, o| Engine::Trtllm.keys(n, o));
        out.fields.set(Field::Kind, Kind::Benchmark, line);
        out.fields.set(Field::Launcher, "trtllm-bench", line);
        if let Some(n) = args.flag(&["backend"]) {
            out.text(Field::Backend, n);
        }
        let mut c = ReadFields::default();
        for f in &args.flags {
            match names::snake(&f.name).as_str() {
                "num_requests" => c.int(Field::NumPrompts, &f.node),
                "concurrency" => c.int(Field::Concurrency, &f.node),
                _ => true,
            };
        }
        out.unrecognized.retain(|(n, _)| {
            !matches!(n.as_str(), "--workspace" | "--dataset" | "--num_requests" | "--concurrency" | "--engine_dir")
        });
        match self.servers.first_mut() {
            // The commands that build and run the engine form one benchmark.
            Some((Engine::Trtllm, first)) => first.fields.copy_missing(&out.fields),
            _ => self.servers.push((Engine::Trtllm, out)),
        }
        if c.fields.is_empty() {
            return;
        }
        // The options of the data set written before also describe its requests.
        if let Some((_, data)) = self.clients.iter_mut().find(|(name, _)| *name == "prepare_dataset") {
            data.fields.copy_missing(&c.fields);
        } else if self.clients.is_empty() {
            self.clients.push(("trtllm-bench", c));
        }
    }
}
