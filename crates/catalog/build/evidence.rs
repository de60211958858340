//! Encodes the index of compared measurements as bytes that can be searched without parsing. They are decoded by
//! `src/evidence.rs`.
//!
//! The numbers of rows and columns are followed by the columns. Each has its name, its distinct values, and the index
//! of the value for every row, in one byte if there are at most 256 values and in two otherwise. Then follow the
//! measured and the predicted value of each row and the bounds of the prediction, as 32-bit floats. The ids of the rows
//! are stored separately, because only that of the nearest row is read: in blocks of [`BLOCK`] lines, each with its
//! compressed length in four bytes and the deflated text.

use std::io::{self, Write as _};

const FIGURES: [&str; 4] = ["measured", "predicted", "lower", "upper"];

/// Number of ids per block: small enough to read one id within microseconds, large enough to compress well.
const BLOCK: usize = 256;

/// Returns the encoded index without ids, and the encoded ids.
pub(crate) fn encode(text: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().map_err(|e| e.to_string())?.iter().map(str::to_owned).collect();
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let place = |wanted: &str| names.iter().position(|name| name == wanted).ok_or(format!("no column {wanted}"));
    let (id, figures) = (place("id")?, FIGURES.map(place));
    let coded = names.iter().enumerate().filter(|(_, name)| *name != "id" && !FIGURES.contains(&name.as_str()));
    let coded: Vec<(usize, &String)> = coded.collect();
    let mut bytes = Vec::new();
    whole(&mut bytes, rows.len());
    whole(&mut bytes, coded.len());
    for (at, name) in coded {
        let cells: Vec<&str> = rows.iter().map(|row| row.get(at).unwrap_or_default()).collect();
        let values: Vec<&str> = cells.iter().copied().collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        put(&mut bytes, name);
        whole(&mut bytes, values.len());
        values.iter().for_each(|value| put(&mut bytes, value));
        for cell in cells {
            let code = values.binary_search(&cell).map_err(|_| "lost a value")?;
            let code = u16::try_from(code).map_err(|_| format!("{name}: more than 65,536 values"))?;
            match values.len() {
                ..=256 => bytes.push(code as u8),
                _ => bytes.extend(code.to_le_bytes()),
            }
        }
    }
    for row in &rows {
        for figure in &figures {
            let cell = row.get(figure.clone()?).unwrap_or_default();
            let value: f32 = cell.parse().map_err(|_| format!("not a number: {cell}"))?;
            bytes.extend(value.to_le_bytes());
        }
    }
    let ids: Vec<&str> = rows.iter().map(|row| row.get(id).unwrap_or_default()).collect();
    Ok((bytes, blocks(&ids).map_err(|error| error.to_string())?))
}

fn blocks(ids: &[&str]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for block in ids.chunks(BLOCK) {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(block.join("\n").as_bytes())?;
        let packed = encoder.finish()?;
        bytes.extend(u32::try_from(packed.len()).map_err(io::Error::other)?.to_le_bytes());
        bytes.extend(packed);
    }
    Ok(bytes)
}

fn put(bytes: &mut Vec<u8>, text: &str) {
    whole(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn whole(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
