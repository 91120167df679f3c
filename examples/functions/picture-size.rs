//! Returns type, width and height of a picture in storage, a PNG or a JPEG. The input is the picture's `bucket/path`.
mod tenantry;

use std::io::Read;

fn main() {
    let mut path = String::new();
    if std::io::stdin().read_to_string(&mut path).is_err() {
        return reject(400, r#"{"message":"The path is not UTF-8."}"#);
    }
    match tenantry::get(path.trim()) {
        Err(error) => reject(404, &error),
        Ok(bytes) => match size_of(&bytes) {
            Some((kind, width, height)) => print!(r#"{{"type":"{kind}","width":{width},"height":{height},"bytes":{}}}"#, bytes.len()),
            None => reject(415, r#"{"message":"The file is neither PNG nor JPEG."}"#),
        },
    }
}

fn reject(status: u16, error: &str) {
    print!("Status: {status}\nContent-Type: application/json\n\n{error}");
}

fn size_of(bytes: &[u8]) -> Option<(&'static str, u32, u32)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16)? == b"IHDR" {
        return Some(("image/png", number(bytes.get(16..20)?), number(bytes.get(20..24)?)));
    }
    if !bytes.starts_with(b"\xff\xd8") {
        return None;
    }
    // Segments, each with its length, up to the one that begins a frame.
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1)?;
        if *bytes.get(at)? != 0xff {
            return None;
        }
        if marker == 0xff {
            at += 1;
            continue;
        }
        let begins_frame = (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker);
        if begins_frame {
            return Some(("image/jpeg", number(bytes.get(at + 7..at + 9)?), number(bytes.get(at + 5..at + 7)?)));
        }
        at += 2 + number(bytes.get(at + 2..at + 4)?) as usize;
    }
}

/// Reads a big-endian number.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte))
}
