//! HTTP for those who scrape: one request of a connection, which is answered and closed.
//!
//! One thread serves all connections, and waits for none of them: what a client sends, how long it takes, how many of them there are
//! and what is kept of each has a limit. A request has no body.
#![forbid(unsafe_code)]

use super::request::{self, MetricsRequest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Of one that comes when there are so many, the one that has been there longest is closed.
const MOST_CLIENTS: usize = 16;
/// Of a connection, from its beginning to its end.
const LONGEST: Duration = Duration::from_secs(10);
/// Bytes that are read of a client after its request, so that it gets the answer.
const MOST_AFTER: usize = 1 << 20;
/// As long as no connection can be taken (no descriptors).
const REST: Duration = Duration::from_millis(100);

/// What is answered.
pub struct Answer {
    pub status: u16,
    pub content: &'static str,
    pub body: Rc<str>,
}

/// What a connection is doing.
enum ConnectionState {
    Asks(Vec<u8>),
    Gets { head: Vec<u8>, body: Rc<str>, written: usize },
    Ends { read: usize },
}

struct Client {
    stream: TcpStream,
    until: Instant,
    state: ConnectionState,
}

/// Answers until the other end of `end` is closed.
///
/// From this machine a request is for an address or for one of these names; who listens to others does not know all of his.
pub fn serve(
    listener: &TcpListener,
    end: &UnixStream,
    names: &[String],
    mut answer: impl FnMut(&MetricsRequest) -> Answer,
) {
    let mut clients: Vec<Client> = Vec::new();
    let mut rests = None;
    loop {
        let now = Instant::now();
        clients.retain(|client| client.until > now);
        rests = rests.filter(|until| *until > now);
        let next = clients.iter().map(|client| client.until).chain(rests).min();
        let ready = wait(listener, end, &clients, next.map(|next| next - now), rests.is_some());
        let Ok([ended, comes, ready @ ..]) = ready.as_deref() else {
            return; // (poll(2) fails without memory alone)
        };
        if *ended {
            return;
        }
        let mut ready = ready.iter();
        clients.retain_mut(|client| {
            ready.next() != Some(&true) || client.goes_on(names, &mut answer).unwrap_or(false)
        });
        if *comes && take(listener, &mut clients).is_err() {
            rests = Some(Instant::now() + REST);
        }
    }
}

/// Which are ready: the end, the listener, and each of the clients.
fn wait(
    listener: &TcpListener,
    end: &UnixStream,
    clients: &[Client],
    time: Option<Duration>,
    rests: bool,
) -> io::Result<Vec<bool>> {
    let comes = if rests { PollFlags::empty() } else { PollFlags::IN };
    let mut asked = vec![PollFd::new(end, PollFlags::IN), PollFd::new(listener, comes)];
    asked.extend(
        clients.iter().map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), client.waits_for())),
    );
    let time =
        time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
    match poll(&mut asked, time.as_ref()) {
        Ok(_) => Ok(asked.iter().map(|one| !one.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; asked.len()]),
        Err(error) => Err(error.into()),
    }
}

/// Takes those who wait to be taken.
fn take(listener: &TcpListener, clients: &mut Vec<Client>) -> io::Result<()> {
    for _ in 0..MOST_CLIENTS {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {
                continue;
            }
            Err(error) => return Err(error),
        };
        stream.set_nonblocking(true)?;
        if clients.len() == MOST_CLIENTS {
            clients.remove(0);
        }
        clients.push(Client {
            stream,
            until: Instant::now() + LONGEST,
            state: ConnectionState::Asks(Vec::new()),
        });
    }
    Ok(())
}

impl Client {
    fn waits_for(&self) -> PollFlags {
        match self.state {
            ConnectionState::Gets { .. } => PollFlags::OUT,
            ConnectionState::Asks(_) | ConnectionState::Ends { .. } => PollFlags::IN,
        }
    }

    /// Does what can be done at once. Whether there is more to do.
    fn goes_on(
        &mut self,
        names: &[String],
        answer: &mut impl FnMut(&MetricsRequest) -> Answer,
    ) -> io::Result<bool> {
        match self.does(names, answer) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(true),
            done => done,
        }
    }

    fn does(
        &mut self,
        names: &[String],
        answer: &mut impl FnMut(&MetricsRequest) -> Answer,
    ) -> io::Result<bool> {
        let mut bytes = [0; 4096];
        match &mut self.state {
            ConnectionState::Asks(asked) => {
                let room = bytes.len().min(request::LONGEST - asked.len());
                let count = self.stream.read(&mut bytes[..room])?;
                asked.extend_from_slice(&bytes[..count]);
                let own = self.stream.local_addr().is_ok_and(|at| at.ip().to_canonical().is_loopback());
                let (head, body) = match MetricsRequest::parse(asked, own.then_some(names)) {
                    Ok(None) => return Ok(count != 0),
                    Ok(Some(request)) => {
                        let Answer { status, content, body } = answer(&request);
                        let head = head(status, content, body.len());
                        (head, if request.head { "".into() } else { body })
                    }
                    Err((status, why)) => {
                        let why = format!("topdown: {why}\n");
                        (head(status, request::TEXT, why.len()), why.into())
                    }
                };
                self.state = ConnectionState::Gets { head: head.into(), body, written: 0 };
                self.does(names, answer)
            }
            ConnectionState::Gets { head, body, written } => {
                let all = [head.as_slice(), body.as_bytes()];
                let rest = match written.checked_sub(head.len()) {
                    None => &all[0][*written..],
                    Some(of_body) => &all[1][of_body..],
                };
                if rest.is_empty() {
                    self.stream.shutdown(Shutdown::Write)?;
                    self.state = ConnectionState::Ends { read: 0 };
                    return Ok(true);
                }
                *written += self.stream.write(rest)?;
                Ok(true)
            }
            // (closing what has unread bytes takes the answer from the client)
            ConnectionState::Ends { read } => {
                let count = self.stream.read(&mut bytes)?;
                *read += count;
                Ok(count != 0 && *read < MOST_AFTER)
            }
        }
    }
}

fn head(status: u16, content: &str, length: usize) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed\r\nAllow: GET, HEAD",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        _ => "Request Header Fields Too Large",
    };
    let date = httpdate::fmt_http_date(std::time::SystemTime::now());
    format!(
        "HTTP/1.1 {status} {reason}\r\nDate: {date}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    )
}
