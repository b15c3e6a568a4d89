//! Quantiles and proportions.
#![forbid(unsafe_code)]

/// Of the normal distribution, such that 95 % lie within it on either side.
pub(crate) const TWO_SIDED: f64 = 1.959_964;
/// Such that 95 % lie below.
const ONE_SIDED: f64 = 1.644_854;

/// The same of Student's distribution (Abramowitz and Stegun 26.7.5).
pub(crate) fn student(degrees: usize) -> f64 {
    let (z, v) = (TWO_SIDED, degrees.max(1) as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / v + second / v.powi(2) + third / v.powi(3)
}

/// Wilson's interval of a proportion that was `part` of `all` draws.
fn wilson(part: f64, all: f64, z: f64) -> (f64, f64) {
    if all <= 0.0 {
        return (0.0, 1.0);
    }
    let (p, z2) = (part / all, z * z);
    let middle = (p + z2 / (2.0 * all)) / (1.0 + z2 / all);
    let half = z * (p * (1.0 - p) / all + z2 / (4.0 * all * all)).sqrt() / (1.0 + z2 / all);
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// Both ends of a proportion's interval (95 %).
pub(crate) fn proportion(part: f64, all: f64) -> (f64, f64) {
    wilson(part, all, TWO_SIDED)
}

/// What a proportion does not exceed (95 %).
pub(crate) fn at_most(part: f64, all: f64) -> f64 {
    wilson(part, all, ONE_SIDED).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (degrees, expected) in [(5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)] {
            assert!((student(degrees) - expected).abs() < 0.01, "{degrees}: {}", student(degrees));
        }
        let (low, high) = proportion(10.0, 100.0);
        assert!((low - 0.0552).abs() < 1e-3 && (high - 0.1744).abs() < 1e-3, "{low} {high}");
        assert!((at_most(0.0, 100.0) - 0.0263).abs() < 1e-3 && at_most(0.0, 0.0) == 1.0);
    }
}
