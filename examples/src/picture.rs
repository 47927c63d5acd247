//! Writes a field of numbers as a PNG picture.

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write};

/// A picture of `width` columns of `values` from 0 (dark blue) over 0.5 (red) to 1 (pale yellow).
pub fn png(width: usize, values: &[f64]) -> io::Result<Vec<u8>> {
    let height = values.len().checked_div(width).unwrap_or(0);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    for row in values.chunks_exact(width.max(1)) {
        // Each row opens with the number of its filter: none.
        packed.write_all(&[0])?;
        for &value in row {
            packed.write_all(&colour(value))?;
        }
    }
    let mut header = Vec::new();
    header.extend_from_slice(&(width as u32).to_be_bytes());
    header.extend_from_slice(&(height as u32).to_be_bytes());
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, b"IHDR", &header);
    chunk(&mut file, b"IDAT", &packed.finish()?);
    chunk(&mut file, b"IEND", &[]);
    Ok(file)
}

fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    file.extend_from_slice(&(data.len() as u32).to_be_bytes());
    let start = file.len();
    file.extend_from_slice(kind);
    file.extend_from_slice(data);
    let mut crc = Crc::new();
    crc.update(&file[start..]);
    file.extend_from_slice(&crc.sum().to_be_bytes());
}

fn colour(value: f64) -> [u8; 3] {
    const STOPS: [[f64; 3]; 4] =
        [[13.0, 8.0, 60.0], [140.0, 20.0, 120.0], [240.0, 90.0, 50.0], [252.0, 250.0, 170.0]];
    let place = value.clamp(0.0, 1.0) * 3.0;
    let low = (place as usize).min(2);
    let part = place - low as f64;
    std::array::from_fn(|i| (STOPS[low][i] * (1.0 - part) + STOPS[low + 1][i] * part) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use std::io::Read;

    #[test]
    fn the_parts_of_the_file_are_in_place() {
        let file = png(3, &[0.0, 0.5, 1.0, 2.0, -1.0, f64::NAN]).unwrap();
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(&file[8..16], b"\0\0\0\x0dIHDR");
        assert_eq!(&file[16..24], [0, 0, 0, 3, 0, 0, 0, 2]);
        // The checksum of an empty end chunk is the same in every PNG.
        assert_eq!(&file[file.len() - 8..], b"IEND\xae\x42\x60\x82");
        let length = u32::from_be_bytes(file[33..37].try_into().unwrap()) as usize;
        let mut pixels = Vec::new();
        ZlibDecoder::new(&file[41..41 + length]).read_to_end(&mut pixels).unwrap();
        assert_eq!(pixels.len(), 2 * (1 + 3 * 3));
        assert_eq!(pixels[1..4], colour(0.0));
        assert_eq!(pixels[7..10], pixels[11..14]);
    }
}
