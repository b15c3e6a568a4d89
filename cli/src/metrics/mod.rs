//! `--open-metrics`: what was counted so far, for who scrapes it (Prometheus, the OpenTelemetry collector, curl).
//!
//! The thread that counts puts its figures here once a second; a thread of their own answers requests, and reads what the processes'
//! table files have on regions meanwhile.
#![forbid(unsafe_code)]

mod families;
mod text;

use crate::sys;
use families::{Families, Most};
use std::fmt::Display;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tiny_http::{Header, Method, Request, Response, Server};
use topdown_report::Report;
use topdown_report::timeline::{Interval, Of};

/// What the answers are (OpenMetrics 1.0).
const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PATH: &str = "/metrics";

/// What was counted from outside since the start.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The whole first; then its parts.
    pub series: Vec<(Of, Interval)>,
    /// Instructions and cycles, where they were counted.
    pub ipc: Option<(u64, u64)>,
}

/// Where the thread that counts leaves them.
#[derive(Clone, Debug, Default)]
pub struct Published(Arc<Mutex<Totals>>);

impl Published {
    pub fn set(&self, totals: Totals) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = totals;
    }

    fn get(&self) -> Totals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What processes have measured themselves so far.
pub type Inside = Box<dyn Fn() -> Option<Report> + Send>;

/// Answers requests as long as it is there.
pub struct Endpoint {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
    published: Published,
    url: String,
}

impl Endpoint {
    /// At an address such as 127.0.0.1:9410, or a port of the loopback interface; 0: any that is free.
    ///
    /// # Errors
    /// Nobody can listen there; the text says why.
    pub fn open(address: &str, command: &str, inside: Inside) -> Result<Endpoint, String> {
        let failed = |error: &dyn Display| format!("--open-metrics {address}: cannot listen there: {error}");
        let port = address.parse::<u16>();
        let listener = match port {
            Ok(port) => TcpListener::bind(("127.0.0.1", port)),
            Err(_) => TcpListener::bind(address),
        };
        let listener = listener.map_err(|error| failed(&error))?;
        let at = listener.local_addr().map_err(|error| failed(&error))?;
        let published = Published::default();
        let mut page =
            Page { published: published.clone(), inside, command: command.into(), most: Most::default() };
        // (signals are the command's, and the main thread relays them)
        sys::with_signals_blocked(|| {
            let server = Server::from_listener(listener, None).map_err(|error| failed(&error))?;
            let server = Arc::new(server);
            let own = Arc::clone(&server);
            let answers = move || own.incoming_requests().for_each(|request| page.answer(request));
            let thread = std::thread::Builder::new().spawn(answers).map_err(|error| failed(&error))?;
            Ok(Endpoint { server, thread: Some(thread), published, url: format!("http://{at}{PATH}") })
        })
    }

    /// Where to put what was counted.
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What is answered.
struct Page {
    published: Published,
    inside: Inside,
    command: String,
    most: Most,
}

impl Page {
    fn answer(&mut self, request: Request) {
        let path = request.url().split('?').next().unwrap_or_default();
        let response = match (request.method(), path) {
            (Method::Get | Method::Head, PATH) => {
                let content = Header::from_bytes("Content-Type", CONTENT).expect("a plain text");
                Response::from_string(self.text()).with_header(content)
            }
            (Method::Get | Method::Head, _) => {
                Response::from_string(format!("topdown: {PATH} has the metrics\n")).with_status_code(404)
            }
            _ => Response::from_string("topdown: metrics are read by GET\n").with_status_code(405),
        };
        let _ = request.respond(response); // who asks may be gone
    }

    fn text(&mut self) -> String {
        let families = Families::new(&self.command, &self.published.get(), (self.inside)().as_ref());
        text::render(families.at_least(&mut self.most))
    }
}
