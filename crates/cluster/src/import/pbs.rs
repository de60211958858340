//! Resource directives of PBS and LSF.

use super::fields::ReadFields;
use super::value::parse_int;
use crate::import::Field;
use crate::import::place::Place;

/// Reads directives such as `#PBS -l select=4:ngpus=8` and `#BSUB -nnodes 4`. Returns false if the script has none.
pub(crate) fn report(text: &str, place: impl Fn(u32) -> Place, out: &mut ReadFields) -> bool {
    let mut found = false;
    for (line, n) in text.lines().zip(1..) {
        let at = place(n);
        if let Some(rest) = line.trim().strip_prefix("#PBS") {
            found = true;
            let mut words = rest.split_whitespace();
            while let Some(word) = words.next() {
                if word == "-l" {
                    words.next().into_iter().flat_map(|list| list.split(',')).for_each(|r| resource(r, at, out));
                }
            }
        } else if let Some(rest) = line.trim().strip_prefix("#BSUB") {
            found = true;
            let words: Vec<&str> = rest.split_whitespace().collect();
            for pair in words.windows(2) {
                if let ["-nnodes", count] = pair {
                    put(Field::Nodes, count, at, out);
                }
            }
        }
    }
    found
}

/// Reads a resource request such as `select=4:ncpus=64:ngpus=4`, `nodes=4:gpus=8` or `walltime=04:00:00`.
fn resource(request: &str, at: Place, out: &mut ReadFields) {
    for part in request.split(':') {
        match part.split_once('=') {
            Some(("select" | "nodes", count)) => put(Field::Nodes, count, at, out),
            Some(("ngpus" | "gpus", count)) => put(Field::AcceleratorsPerNode, count, at, out),
            _ => {}
        }
    }
}

fn put(key: Field, count: &str, at: Place, out: &mut ReadFields) {
    if let Some(n) = parse_int(count).filter(|n| *n > 0) {
        out.fields.set(key, n, at);
    }
}
