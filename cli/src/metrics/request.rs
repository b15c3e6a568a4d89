//! Requests of HTTP/1: what of them is looked at.
#![forbid(unsafe_code)]

use httparse::{EMPTY_HEADER, Error, Status};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of a request.
pub const LONGEST: usize = 8192;
const MOST_HEADERS: usize = 64;

pub const TEXT: &str = "text/plain; charset=utf-8";

/// One that is whole.
#[derive(Debug, PartialEq)]
pub struct MetricsRequest {
    /// GET and HEAD are known.
    pub known: bool,
    pub head: bool,
    /// Without the query.
    pub path: String,
    pub format: AnswerFormat,
}

/// What an answer is written as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnswerFormat {
    /// Prometheus' text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    Open,
}

/// The status of an answer, and why it is not another.
type ErrorAnswer = (u16, String);

impl MetricsRequest {
    /// What has come of one so far; nothing, if it is not whole. With `own_names` it must be for one of these, or for an address.
    ///
    /// # Errors
    /// It is none that is answered.
    pub fn parse(bytes: &[u8], own_names: Option<&[String]>) -> Result<Option<MetricsRequest>, ErrorAnswer> {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(bytes) {
            Ok(Status::Complete(_)) => {}
            Ok(Status::Partial) if bytes.len() < LONGEST => return Ok(None),
            Ok(Status::Partial) => return Err((431, format!("a request has at most {LONGEST} bytes"))),
            Err(Error::TooManyHeaders) => {
                return Err((431, format!("a request has at most {MOST_HEADERS} headers")));
            }
            Err(error) => return Err((400, format!("this is no request: {error}"))),
        }
        let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
        let values = |name: &'static str| {
            let headers = parsed.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
            headers.map(|header| String::from_utf8_lossy(header.value).trim().to_string())
        };
        let is_number =
            |length: &String| !length.is_empty() && length.bytes().all(|digit| digit.is_ascii_digit());
        if !values("Content-Length").all(|length| is_number(&length)) {
            return Err((400, "Content-Length is a number".into()));
        }
        let no_body = |length: &str| length.bytes().all(|digit| digit == b'0');
        if values("Transfer-Encoding").next().is_some()
            || !values("Content-Length").all(|length| no_body(&length))
        {
            return Err((413, "a request has no body".into()));
        }
        let hosts: Vec<_> = values("Host").collect();
        let (authority, path) = match target.strip_prefix("http://") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (hosts.first().map(String::as_str), target),
        };
        match (authority, hosts.len()) {
            (None, 0) if parsed.version == Some(0) => {}
            (_, 1) => {}
            _ => return Err((400, "a request has one Host".into())),
        }
        let foreign = authority.zip(own_names).filter(|(host, own_names)| !is_own(host, own_names));
        if let Some((host, _)) = foreign {
            return Err((421, format!("this is not {}", topdown_report::clean(host))));
        }
        let accepted: Vec<_> = values("Accept").collect();
        Ok(Some(MetricsRequest {
            known: matches!(method, "GET" | "HEAD"),
            head: method == "HEAD",
            path: path.split('?').next().unwrap_or_default().into(),
            format: AnswerFormat::of(&accepted.join(",")),
        }))
    }
}

/// Whether a Host is an address, or a name of this machine: a page in a browser, which can have any name lead here, cannot read then.
fn is_own(host: &str, names: &[String]) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, port)| {
            address.parse::<Ipv6Addr>().is_ok()
                && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        });
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    let name = name.strip_suffix('.').unwrap_or(name);
    is_port(port)
        && (name.parse::<Ipv4Addr>().is_ok() || names.iter().any(|own| own.eq_ignore_ascii_case(name)))
}

impl AnswerFormat {
    /// The one that is asked for: OpenMetrics by its name alone, as from Prometheus' own libraries.
    fn of(accept: &str) -> AnswerFormat {
        let (mut open, mut text) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
            let (kind, parameters) = (parts.next().unwrap_or_default(), parts.collect::<Vec<_>>());
            let of = |name: &str| {
                parameters.iter().find_map(|part| part.strip_prefix(name)?.trim().strip_prefix('='))
            };
            let quality: f64 =
                of("q").map_or(Some(1.0), |quality| quality.trim().parse().ok()).unwrap_or(0.0);
            let version = of("version").map(|version| version.trim().trim_matches('"'));
            match kind.as_str() {
                "application/openmetrics-text" if version.is_none_or(|version| version == "1.0.0") => {
                    open = quality.max(open);
                }
                "text/plain" | "text/*" | "*/*" => text = quality.max(text),
                _ => {}
            }
        }
        if open > 0.0 && open >= text { AnswerFormat::Open } else { AnswerFormat::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<MetricsRequest>, u16> {
        let names = ["localhost".to_string(), "machine".into()];
        MetricsRequest::parse(text.as_bytes(), Some(&names)).map_err(|(status, _)| status)
    }

    #[test]
    fn only_a_small_request_without_a_body_for_this_machine_is_one() {
        let long = "a".repeat(LONGEST);
        let many = "a: b\r\n".repeat(MOST_HEADERS);
        for (rest, status) in [
            ("Content-Length: 999999999999999\r\n", 413),
            ("Content-Length: 18446744073709551615\r\n", 413),
            ("Content-Length: -1\r\n", 400),
            ("Content-Length: +0\r\n", 400),
            ("Content-Length: 0, 0\r\n", 400),
            ("Transfer-Encoding: chunked\r\nContent-Length: x\r\n", 400),
            ("Content-Length: 0\r\nContent-Length: 1\r\n", 413),
            ("content-length:\r\n", 400),
            ("Transfer-Encoding: chunked\r\n", 413),
            ("Host: localhost\r\n", 400),
            ("no header\r\n", 400),
            ("a\0: b\r\n", 400),
            (&many, 431),
        ] {
            let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{rest}\r\n");
            assert_eq!(parse(&request), Err(status), "{rest}");
        }
        for (text, status) in [
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\n\r\n", 400),
            ("\u{16}\u{3}\u{1}", 400),
            ("GET http://other/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
            ("GET / HTTP/1.0\r\nHost: other\r\n\r\n", 421),
            (&format!("GET /{long}"), 431),
            (&format!("GET / HTTP/1.1\r\nHost: {long}"), 431),
        ] {
            assert_eq!(parse(text), Err(status), "{text}");
        }
        for whole in
            ["GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"]
        {
            assert_eq!(parse(whole).unwrap().unwrap().path, "/");
            assert!((0..whole.len()).all(|length| parse(&whole[..length]) == Ok(None)), "{whole}");
        }
        let request =
            parse("HEAD http://machine:80/metrics?a HTTP/1.1\r\nHost: machine\r\n\r\n").unwrap().unwrap();
        assert_eq!((request.known, request.head, request.path.as_str()), (true, true, "/metrics"));
        assert!(!parse("POST / HTTP/1.0\r\n\r\n").unwrap().unwrap().known);
    }

    #[test]
    fn addresses_and_names_of_this_machine_are_its_own() {
        for (host, own) in [
            ("localhost", true),
            ("LOCALHOST:9462", true),
            ("localhost.", true),
            ("machine:1", true),
            ("127.0.0.1:9462", true),
            ("10.1.2.3", true),
            ("[::1]:9462", true),
            ("[::1]", true),
            ("", false),
            ("other:9462", false),
            ("localhost.other", false),
            ("127.0.0.1.other", false),
            ("localhost:80@other", false),
            ("[::1].other", false),
            ("[other]", false),
            ("::1", false),
        ] {
            assert_eq!(is_own(host, &["localhost".into(), "machine".into()]), own, "{host}");
        }
    }

    #[test]
    fn the_format_that_is_asked_for_is_served() {
        const OPEN: &str = "application/openmetrics-text";
        for (accept, format) in [
            ("", AnswerFormat::Text),
            ("*/*", AnswerFormat::Text),
            ("text/plain", AnswerFormat::Text),
            ("text/html", AnswerFormat::Text),
            (OPEN, AnswerFormat::Open),
            (&format!("{OPEN}; version=1.0.0; charset=utf-8"), AnswerFormat::Open),
            (&format!("{OPEN};version=\"1.0.0\""), AnswerFormat::Open),
            (&format!("{OPEN};version=0.0.1"), AnswerFormat::Text),
            (&format!("{OPEN};q=0"), AnswerFormat::Text),
            (&format!("{OPEN};q=0.2,text/plain;q=0.5"), AnswerFormat::Text),
            // Prometheus' own
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                AnswerFormat::Open,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                 application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2",
                AnswerFormat::Open,
            ),
        ] {
            assert_eq!(AnswerFormat::of(accept), format, "{accept}");
        }
    }
}
