//! Metrics in OpenMetrics' text format, which the crate prometheus-client writes.
#![forbid(unsafe_code)]

use super::families::{Family, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

#[derive(Debug)]
struct Scrape(Vec<Family>);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = match family.samples.first() {
                Some((_, Value::Gauge(_))) => MetricType::Gauge,
                Some((_, Value::Info)) => MetricType::Info,
                _ => MetricType::Counter,
            };
            let unit = family.unit.map(|unit| Unit::Other(unit.into()));
            let help = format!("{}.", family.help);
            let mut metrics = encoder.encode_descriptor(&family.name, &help, unit.as_ref(), kind)?;
            for (labels, value) in &family.samples {
                if *value == Value::Info {
                    metrics.encode_info(&labels.as_slice())?;
                    continue;
                }
                if labels.is_empty() {
                    encode(*value, &mut metrics)?;
                } else {
                    encode(*value, &mut metrics.encode_family(&labels.as_slice())?)?;
                }
            }
        }
        Ok(())
    }
}

fn encode(value: Value, to: &mut MetricEncoder) -> Result<(), fmt::Error> {
    match value {
        Value::Counter(count) => to.encode_counter::<NoLabelSet, _, u64>(&count, None),
        Value::Seconds(seconds) => to.encode_counter::<NoLabelSet, _, u64>(&seconds, None),
        Value::Gauge(value) => to.encode_gauge(&value),
        Value::Info => Ok(()),
    }
}

/// The text, `# EOF` included.
pub fn render(families: Vec<Family>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape(families)));
    let mut out = String::new();
    // (a String takes all that is written to it)
    let _ = text::encode(&mut out, &registry);
    out
}
