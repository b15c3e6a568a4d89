//! `--open-metrics`: what was counted so far, for who scrapes it (Prometheus, the OpenTelemetry collector, curl).
//!
//! The thread that counts puts its figures here once a second; a thread of their own answers requests, and reads what the processes'
//! table files have on regions meanwhile. The end of a run waits for no client.
#![forbid(unsafe_code)]

mod families;
mod request;
mod server;
mod text;

use crate::sys;
use families::{Families, LargestValues};
use request::{AnswerFormat, MetricsRequest, TEXT};
use server::Answer;
use std::fmt::Display;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use topdown_report::Report;
use topdown_report::timeline::{SeriesSubject, TimelineInterval};

const PATH: &str = "/metrics";

/// Of so long, all who ask get the same: who asks again and again has no more made.
const SAME: Duration = Duration::from_millis(50);

/// What was counted from outside since the start.
#[derive(Clone, Debug, Default)]
pub struct CountedTotals {
    /// They are made up.
    pub simulated: bool,
    /// The whole first; then its parts.
    pub series: Vec<(SeriesSubject, TimelineInterval)>,
    /// Instructions and cycles, where they were counted.
    pub ipc: Option<(u64, u64)>,
}

/// Where the thread that counts leaves them.
#[derive(Clone, Debug, Default)]
pub struct TotalsCell(Arc<Mutex<CountedTotals>>);

impl TotalsCell {
    pub fn set(&self, totals: CountedTotals) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = totals;
    }

    fn get(&self) -> CountedTotals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What processes have measured themselves so far.
pub type InsideReport = Box<dyn Fn() -> Option<Report> + Send>;

/// Answers requests as long as it is there.
pub struct Endpoint {
    /// Its other end is closed with it.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    published: TotalsCell,
    url: String,
}

impl Endpoint {
    /// At an address such as 127.0.0.1:9410, or a port of the loopback interface, with or without a colon; 0: any that is free.
    ///
    /// # Errors
    /// Nobody can listen there; the text says why.
    pub fn open(address: &str, command: &str, inside: InsideReport) -> Result<Endpoint, String> {
        let failed = |error: &dyn Display| format!("--open-metrics {address}: cannot listen there: {error}");
        let port = address.strip_prefix(':').unwrap_or(address).parse::<u16>();
        let listener = match port {
            Ok(port) => TcpListener::bind(("127.0.0.1", port)),
            Err(_) => TcpListener::bind(address),
        };
        let listener = listener.map_err(|error| failed(&error))?;
        let at = listener.local_addr().map_err(|error| failed(&error))?;
        listener.set_nonblocking(true).map_err(|error| failed(&error))?;
        let (end, ended) = UnixStream::pair().map_err(|error| failed(&error))?;
        let mut names = vec!["localhost".to_string(), sys::host()];
        names.extend(
            address.rsplit_once(':').map(|(name, _)| name.to_string()).filter(|name| !name.is_empty()),
        );
        let published = TotalsCell::default();
        let (given, command) = (published.clone(), command.to_string());
        let answers = move || {
            let mut page =
                MetricsPage { published: given, inside, command, most: LargestValues::default(), made: None };
            server::serve(&listener, &ended, &names, |request| page.answer(request));
        };
        // (signals are the command's, and the main thread relays them)
        let thread = sys::with_signals_blocked(|| std::thread::Builder::new().spawn(answers));
        let thread = thread.map_err(|error| {
            format!(
                "--open-metrics {address}: no thread can be started that answers requests: {error} (`ulimit -u`, or the pids limit of the \
                 container)"
            )
        })?;
        Ok(Endpoint { end: Some(end), thread: Some(thread), published, url: format!("http://{at}{PATH}") })
    }

    /// Where to put what was counted.
    pub fn published(&self) -> &TotalsCell {
        &self.published
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What is answered.
struct MetricsPage {
    published: TotalsCell,
    inside: InsideReport,
    command: String,
    most: LargestValues,
    /// The last one.
    made: Option<(Instant, AnswerFormat, Rc<str>)>,
}

impl MetricsPage {
    fn answer(&mut self, request: &MetricsRequest) -> Answer {
        let said = |status, body: String| Answer { status, content: TEXT, body: body.into() };
        if !request.known {
            return said(405, "topdown: metrics are read by GET\n".into());
        }
        if request.path != PATH {
            return said(404, format!("topdown: {PATH} has the metrics\n"));
        }
        let content = match request.format {
            AnswerFormat::Text => "text/plain; version=0.0.4; charset=utf-8",
            AnswerFormat::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        };
        Answer { status: 200, content, body: self.text(request.format) }
    }

    fn text(&mut self, format: AnswerFormat) -> Rc<str> {
        let fresh = self.made.as_ref().filter(|(made, of, _)| *of == format && made.elapsed() < SAME);
        if let Some((_, _, text)) = fresh {
            return Rc::clone(text);
        }
        let families = Families::new(&self.command, &self.published.get(), (self.inside)().as_ref());
        let text: Rc<str> = text::render(&families.at_least(&mut self.most), format).into();
        self.made = Some((Instant::now(), format, Rc::clone(&text)));
        text
    }
}
