//! Plain data as text, for whoever reads it with the same version.

use topdown::{Node, Sum};

/// Plain data: without padding, and any bytes are a value of it.
///
/// # Safety
/// It is.
pub unsafe trait PlainData: Copy + Default {}
// SAFETY: integers and floating point numbers, which fill it (docs/abi has their places).
unsafe impl PlainData for Sum {}
// SAFETY: the same.
unsafe impl PlainData for Node {}

/// Its bytes in hexadecimal digits.
pub fn digits_of<T: PlainData>(data: &T) -> String {
    // SAFETY: it has so many bytes, all of which are initialized.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(data).cast::<u8>(), size_of::<T>()) };
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What these digits are of; None: they are not as many, or other characters.
pub fn of_digits<T: PlainData>(digits: &str) -> Option<T> {
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte_of).collect::<Option<_>>()?;
    if bytes.len() != size_of::<T>() {
        return None;
    }
    // SAFETY: there are as many bytes as the value has, and whatever they are, they are one. It need not be aligned.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

fn byte_of(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().filter(|_| digits.len() == 2)
}

#[cfg(test)]
mod tests {
    use super::{digits_of, of_digits};
    use topdown::Sum;

    #[test]
    fn a_sum_is_what_its_digits_say() {
        let sum = Sum { slots: 0x1234_5678, xx: 0.1, ..Sum::default() };
        let digits = digits_of(&sum);
        assert_eq!(of_digits::<Sum>(&digits), Some(sum));
        assert_eq!(of_digits::<Sum>(&digits[2..]), None);
        assert_eq!(of_digits::<Sum>(&digits.replacen('0', "x", 1)), None);
        assert_eq!(of_digits::<Sum>(&digits.replacen("00", "ä", 1)), None);
    }
}
