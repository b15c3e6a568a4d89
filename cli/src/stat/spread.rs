//! Mean and spread of several runs.
#![forbid(unsafe_code)]

pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation.
pub fn spread(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_the_standard_deviation() {
        assert_eq!(mean(&[1.0, 2.0, 3.0]), Some(2.0));
        assert_eq!(spread(&[1.0, 2.0, 3.0]), Some(1.0));
        assert_eq!((spread(&[1.0]), mean(&[])), (None, None));
    }
}
