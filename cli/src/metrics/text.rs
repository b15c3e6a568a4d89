//! Metrics as a text: OpenMetrics 1.0, or Prometheus' older format, which has no units and no type "info".
#![forbid(unsafe_code)]

use super::families::{Labels, MetricFamily, MetricValue};
use super::request::AnswerFormat;
use std::fmt::{self, Write};

/// The text, whole.
pub fn render(families: &[MetricFamily], format: AnswerFormat) -> String {
    let mut out = String::new();
    // (a String takes all that is written to it)
    let _ = families.iter().try_for_each(|family| write_family(&mut out, family, format));
    if format == AnswerFormat::Open {
        out += "# EOF\n";
    }
    out
}

fn write_family(out: &mut String, family: &MetricFamily, format: AnswerFormat) -> fmt::Result {
    let (kind, ending) = match family.samples.first() {
        Some((_, MetricValue::Gauge(_))) => ("gauge", ""),
        Some((_, MetricValue::Info)) => ("info", "_info"),
        _ => ("counter", "_total"),
    };
    let unit = family.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
    let name = format!("{}{unit}", family.name);
    let sample = format!("{name}{ending}");
    let (described, kind) = match (format, kind) {
        (AnswerFormat::Open, kind) => (&name, kind),
        (AnswerFormat::Text, "info") => (&sample, "gauge"),
        (AnswerFormat::Text, kind) => (&sample, kind),
    };
    writeln!(out, "# HELP {described} {}.\n# TYPE {described} {kind}", family.help)?;
    if let (AnswerFormat::Open, Some(unit)) = (format, family.unit) {
        writeln!(out, "# UNIT {described} {unit}")?;
    }
    for (labels, value) in &family.samples {
        write!(out, "{sample}")?;
        write_labels(out, labels)?;
        match value {
            MetricValue::Counter(count) => writeln!(out, " {count}")?,
            MetricValue::Seconds(value) | MetricValue::Gauge(value) => writeln!(out, " {value:?}")?,
            MetricValue::Info => writeln!(out, " 1")?,
        }
    }
    Ok(())
}

fn write_labels(out: &mut String, labels: &Labels) -> fmt::Result {
    for (k, (name, value)) in labels.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        write!(out, "{}{name}=\"{value}\"", if k == 0 { '{' } else { ',' })?;
    }
    out.write_str(if labels.is_empty() { "" } else { "}" })
}
