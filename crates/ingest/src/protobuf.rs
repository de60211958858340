//! Decoder of Protocol Buffers messages, field by field, without a schema.

/// A field of a message.
pub(crate) enum Field<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(&'a [u8]),
}

/// Decodes the number and value of the next field. Returns `None` at the end of the message or if it is damaged.
pub(crate) fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let key = varint(rest)?;
    let value = match key & 7 {
        0 => Field::Varint(varint(rest)?),
        1 => Field::Fixed64(*split(rest, 8)?.first_chunk()?),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Field::Bytes(split(rest, length)?)
        }
        5 => Field::Fixed32(*split(rest, 4)?.first_chunk()?),
        _ => return None,
    };
    Some((key >> 3, value))
}

/// Splits `length` bytes off a message.
pub(crate) fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (now, later) = rest.split_at_checked(length)?;
    *rest = later;
    Some(now)
}

/// Decodes a varint.
pub(crate) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = split(rest, 1)?.first_chunk::<1>()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
