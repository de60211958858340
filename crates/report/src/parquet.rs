//! Minimal Parquet writer for numeric tables: no compression, dictionary encoding for repeated values, plain encoding
//! for other numbers. Row groups are written one after another, so that a file can grow indefinitely with one group in
//! memory.
//!
//! Format: github.com/apache/parquet-format, version 2 of the encodings, pages of version 1, metadata in Thrift's
//! compact protocol.

use serde::{Deserialize, Serialize};

/// Magic bytes at the beginning and end of a file.
pub const MAGIC: &[u8; 4] = b"PAR1";

// Enum values of the format's Thrift definitions.
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const REQUIRED: i64 = 0;
const OPTIONAL: i64 = 1;
const UTF8: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const UNCOMPRESSED: i64 = 0;

/// Type of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnKind {
    /// Strings from this dictionary.
    Words(Vec<String>),
    /// Numbers from this dictionary.
    Numbers(Vec<f64>),
    /// Arbitrary numbers, nullable.
    Figures,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: ColumnKind,
}

/// A column's values in a row group.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Indices into the column's dictionary.
    Places(Vec<u32>),
    /// Numbers; non-finite ones become nulls.
    Figures(Vec<f64>),
}

/// Metadata of a row group, needed for the footer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    rows: u64,
    /// Per column: offset of its first page, offset of its first data page, and total size in bytes.
    chunks: Vec<(u64, u64, u64)>,
}

impl Group {
    /// Number of rows in the group.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

/// Appends a row group that begins at byte offset `at` of the file. `values` are in the order of `columns` and all of
/// the same length.
pub fn group(columns: &[Column], values: &[Values], at: u64, out: &mut Vec<u8>) -> Group {
    let begin = out.len() as u64;
    let mut rows = 0;
    let mut chunks = Vec::with_capacity(columns.len());
    for (column, values) in columns.iter().zip(values) {
        let first = out.len() as u64;
        let mut page = Vec::new();
        let mut data_at = first;
        match values {
            Values::Places(places) => {
                rows = places.len() as u64;
                let entries = dictionary(&column.kind, &mut page);
                header(out, DICTIONARY_PAGE, page.len(), entries, PLAIN);
                out.append(&mut page);
                data_at = out.len() as u64;
                let bits = (usize::BITS - entries.saturating_sub(1).leading_zeros()).max(1);
                page.push(u8::try_from(bits).unwrap_or(32));
                runs(places.iter().copied(), bits, &mut page);
                header(out, DATA_PAGE, page.len(), places.len(), RLE_DICTIONARY);
            }
            Values::Figures(figures) => {
                rows = figures.len() as u64;
                let mut levels = Vec::new();
                runs(figures.iter().map(|figure| u32::from(figure.is_finite())), 1, &mut levels);
                page.extend_from_slice(&u32::try_from(levels.len()).unwrap_or(u32::MAX).to_le_bytes());
                page.append(&mut levels);
                for figure in figures.iter().filter(|figure| figure.is_finite()) {
                    page.extend_from_slice(&figure.to_le_bytes());
                }
                header(out, DATA_PAGE, page.len(), figures.len(), PLAIN);
            }
        }
        out.append(&mut page);
        chunks.push((at + first - begin, at + data_at - begin, out.len() as u64 - first));
    }
    Group { rows, chunks }
}

/// Encodes the footer: the schema and the location of all row groups.
#[must_use]
pub fn footer(columns: &[Column], groups: &[Group]) -> Vec<u8> {
    let mut file = Thrift::default();
    file.field(1).integer(2);
    file.field(2).list(Type::Struct, columns.len() + 1);
    let mut root = Thrift::default();
    root.field(4).text("table");
    root.field(5).integer(columns.len() as i64);
    file.nested(root);
    for column in columns {
        let mut element = Thrift::default();
        element.field(1).integer(physical(&column.kind));
        element.field(3).integer(if column.kind == ColumnKind::Figures { OPTIONAL } else { REQUIRED });
        element.field(4).text(&column.name);
        if matches!(column.kind, ColumnKind::Words(_)) {
            element.field(6).integer(UTF8);
        }
        file.nested(element);
    }
    file.field(3).long(groups.iter().map(|group| group.rows).sum());
    file.field(4).list(Type::Struct, groups.len());
    for group in groups {
        file.nested(row_group(columns, group));
    }
    file.field(6).text(concat!("atlas ", env!("CARGO_PKG_VERSION")));
    let mut out = file.end();
    let length = u32::try_from(out.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(MAGIC);
    out
}

fn physical(kind: &ColumnKind) -> i64 {
    if matches!(kind, ColumnKind::Words(_)) { BYTE_ARRAY } else { DOUBLE }
}

fn row_group(columns: &[Column], group: &Group) -> Thrift {
    let mut all = Thrift::default();
    all.field(1).list(Type::Struct, columns.len());
    for (column, (first, data, bytes)) in columns.iter().zip(&group.chunks) {
        let mut meta = Thrift::default();
        meta.field(1).integer(physical(&column.kind));
        let encodings: &[i64] =
            if column.kind == ColumnKind::Figures { &[PLAIN, RLE] } else { &[PLAIN, RLE, RLE_DICTIONARY] };
        meta.field(2).list(Type::I32, encodings.len());
        encodings.iter().for_each(|encoding| meta.element(*encoding));
        meta.field(3).list(Type::Binary, 1);
        meta.bytes(column.name.as_bytes());
        meta.field(4).integer(UNCOMPRESSED);
        meta.field(5).long(group.rows);
        meta.field(6).long(*bytes);
        meta.field(7).long(*bytes);
        meta.field(9).long(*data);
        if first != data {
            meta.field(11).long(*first);
        }
        let mut chunk = Thrift::default();
        chunk.field(2).long(*first);
        chunk.field(3).inner(meta);
        all.nested(chunk);
    }
    all.field(2).long(group.chunks.iter().map(|(_, _, bytes)| bytes).sum());
    all.field(3).long(group.rows);
    all
}

/// Appends the values of a column's dictionary and returns their number.
fn dictionary(kind: &ColumnKind, out: &mut Vec<u8>) -> usize {
    match kind {
        ColumnKind::Words(words) => {
            for word in words {
                out.extend_from_slice(&u32::try_from(word.len()).unwrap_or(u32::MAX).to_le_bytes());
                out.extend_from_slice(word.as_bytes());
            }
            words.len()
        }
        ColumnKind::Numbers(numbers) => {
            numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
            numbers.len()
        }
        ColumnKind::Figures => 0,
    }
}

/// Appends a page header.
fn header(out: &mut Vec<u8>, page: i64, bytes: usize, values: usize, encoding: i64) {
    let mut header = Thrift::default();
    header.field(1).integer(page);
    header.field(2).integer(bytes as i64);
    header.field(3).integer(bytes as i64);
    let mut of = Thrift::default();
    of.field(1).integer(values as i64);
    of.field(2).integer(encoding);
    if page == DATA_PAGE {
        of.field(3).integer(RLE);
        of.field(4).integer(RLE);
    }
    header.field(if page == DATA_PAGE { 5 } else { 7 }).inner(of);
    out.append(&mut header.end());
}

/// Appends values in run-length encoding with `bits` per value. Bit packing is not worthwhile: the columns of a sweep
/// change rarely, or in every row.
fn runs(values: impl Iterator<Item = u32>, bits: u32, out: &mut Vec<u8>) {
    let bytes = bits.div_ceil(8) as usize;
    let mut run: Option<(u32, u64)> = None;
    let mut put = |(value, length): (u32, u64)| {
        varint(length << 1, out);
        out.extend_from_slice(value.to_le_bytes().get(..bytes).unwrap_or_default());
    };
    for value in values {
        run = Some(match run {
            Some((same, length)) if same == value => (value, length + 1),
            Some(other) => {
                put(other);
                (value, 1)
            }
            None => (value, 1),
        });
    }
    run.into_iter().for_each(&mut put);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "seven bits of it")]
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
    out.push(value as u8);
}

/// Type codes of Thrift's compact protocol.
#[derive(Debug, Clone, Copy)]
enum Type {
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Struct = 12,
}

/// Encoder of a Thrift struct: for each field, its number, then its value, which determines the type.
#[derive(Default)]
struct Thrift {
    out: Vec<u8>,
    last: u8,
    field: u8,
}

impl Thrift {
    fn field(&mut self, number: u8) -> &mut Thrift {
        self.field = number;
        self
    }

    fn begin(&mut self, of: Type) {
        // Field numbers ascend and differ by less than sixteen, so that the short form of the field header is enough.
        self.out.push((self.field - self.last) << 4 | of as u8);
        self.last = self.field;
    }

    fn element(&mut self, value: i64) {
        #[expect(clippy::cast_sign_loss, reason = "zigzag")]
        varint(((value << 1) ^ (value >> 63)) as u64, &mut self.out);
    }

    fn integer(&mut self, value: i64) {
        self.begin(Type::I32);
        self.element(value);
    }

    fn long(&mut self, value: u64) {
        self.begin(Type::I64);
        self.element(i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        varint(bytes.len() as u64, &mut self.out);
        self.out.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.begin(Type::Binary);
        self.bytes(text.as_bytes());
    }

    fn list(&mut self, of: Type, length: usize) {
        self.begin(Type::List);
        match u8::try_from(length) {
            Ok(short) if short < 15 => self.out.push(short << 4 | of as u8),
            _ => {
                self.out.push(0xf0 | of as u8);
                varint(length as u64, &mut self.out);
            }
        }
    }

    /// Adds a struct as an element of a list.
    fn nested(&mut self, of: Thrift) {
        self.out.append(&mut of.end());
    }

    /// Adds a struct as a field.
    fn inner(&mut self, of: Thrift) {
        self.begin(Type::Struct);
        self.nested(of);
    }

    fn end(mut self) -> Vec<u8> {
        self.out.push(0);
        self.out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn varints_runs_and_thrift_fields_follow_the_specification() {
        let mut out = Vec::new();
        varint(300, &mut out);
        assert_eq!(out, [0xac, 0x02]);
        // Three times 1, twice 0, a byte each; the header of a run-length run is an even number.
        let mut out = Vec::new();
        runs([1, 1, 1, 0, 0].into_iter(), 1, &mut out);
        assert_eq!(out, [6, 1, 4, 0]);
        // Field 1 as i32 -1, then field 3 as binary "a", then the stop byte.
        let mut thrift = Thrift::default();
        thrift.field(1).integer(-1);
        thrift.field(3).text("a");
        assert_eq!(thrift.end(), [0x15, 1, 0x28, 1, b'a', 0]);
    }

    #[test]
    fn row_groups_state_their_offsets() {
        let columns = [
            Column { name: "target".to_owned(), kind: ColumnKind::Words(vec!["a".to_owned(), "b".to_owned()]) },
            Column { name: "figure".to_owned(), kind: ColumnKind::Figures },
        ];
        let values = [Values::Places(vec![0, 0, 1]), Values::Figures(vec![1.0, f64::NAN, 3.0])];
        let mut out = MAGIC.to_vec();
        let first = group(&columns, &values, 4, &mut out);
        let at = out.len() as u64;
        let second = group(&columns, &values, at, &mut out);
        assert_eq!(first.chunks[0].0, 4);
        assert_eq!(second.chunks[0].0, at);
        assert_eq!(second.chunks[1].0 + second.chunks[1].2, out.len() as u64, "the last chunk ends with the group");
        // Two of the three values are finite.
        assert_eq!(&out[out.len() - 16..], [1f64.to_le_bytes(), 3f64.to_le_bytes()].concat());
        let end = footer(&columns, &[first, second]);
        assert_eq!(&end[end.len() - 4..], MAGIC);
        let length =
            u32::from_le_bytes([end[end.len() - 8], end[end.len() - 7], end[end.len() - 6], end[end.len() - 5]]);
        assert_eq!(length as usize, end.len() - 8);
    }
}
