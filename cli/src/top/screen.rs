//! The terminal: taken over, drawn on, and given back however it ends.
#![forbid(unsafe_code)]

use super::rows::{Order, TopRow};
use crossterm::style::{Attribute, Color, ResetColor, SetAttribute, SetBackgroundColor, SetForegroundColor};
use crossterm::terminal::{
    self, Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{cursor, execute, queue};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::panic;
use std::sync::Once;
use std::time::Duration;
use topdown::LEVEL_1;
use topdown_report::clean;
use topdown_report::page::{SIGNS, terminal_colour};
use topdown_report::terminal::{self as texts, Layout, Stream};
use topdown_report::timeline::SeriesSubject;

/// What is on it besides rows.
pub struct ScreenHead {
    pub title: String,
    pub machine: String,
    pub order: Order,
    /// Rows that are above the first to be seen.
    pub scrolled: usize,
}

const HEAD: &str = "                slots/s retir   bad front  back within   IPC  CPUs  ";
/// Columns of what a row is of.
const TITLE: usize = 14;
/// Columns before the bar.
const BEFORE: usize = HEAD.len();
const KEYS: &str = "q quit   s sort   + - interval   arrows scroll";

/// The terminal, in raw mode and on its second screen.
pub struct Screen {
    colours: bool,
}

impl Screen {
    /// Takes it over.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open() -> io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |about| {
                give_back(); // (what is said is to be seen)
                before(about);
            }));
        });
        terminal::enable_raw_mode()?;
        let screen = Screen { colours: Layout::of(Stream::Output).has_colours };
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide, DisableLineWrap)?;
        Ok(screen)
    }

    /// Draws all of it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn draw(&mut self, view: &ScreenHead, rows: &[TopRow], interval: Duration) -> io::Result<()> {
        let (columns, lines) = terminal::size()?;
        let lines = page(view, rows, interval, (columns.into(), lines.into()), self.colours);
        let mut out = io::stdout().lock();
        queue!(out, cursor::MoveTo(0, 0))?;
        for (k, line) in lines.iter().enumerate() {
            queue!(out, cursor::MoveTo(0, k as u16))?;
            write!(out, "{line}")?;
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, Clear(ClearType::FromCursorDown))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// As it was before.
fn give_back() {
    let mut out = io::stdout();
    let _ = execute!(out, ResetColor, EnableLineWrap, cursor::Show, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}

/// The lines of a terminal of so many columns and lines.
fn page(
    view: &ScreenHead,
    rows: &[TopRow],
    interval: Duration,
    (columns, lines): (usize, usize),
    colours: bool,
) -> Vec<String> {
    let cut = |line: &str| texts::short(line, columns);
    let every = interval.as_secs_f64();
    let mut page = vec![
        cut(&format!(
            "topdown top: {}   every {every} s, sorted by {}",
            clean(&view.title),
            view.order.title()
        )),
        cut(&clean(&view.machine)),
        legend(colours, columns),
        bold(&cut(HEAD), colours),
    ];
    if rows.is_empty() {
        page.push(cut("the first interval is not over yet"));
    }
    let room = lines.saturating_sub(page.len() + 1);
    let (whole, parts) = rows.split_at(rows.len().min(1));
    let last = (parts.len() + whole.len()).saturating_sub(room);
    let parts = &parts[view.scrolled.min(last).min(parts.len())..];
    page.extend(whole.iter().chain(parts).take(room).map(|row| line(row, columns, colours)));
    page.truncate(lines.saturating_sub(1));
    page.push(cut(KEYS));
    page
}

fn bold(text: &str, colours: bool) -> String {
    if colours {
        format!("{}{text}{}", SetAttribute(Attribute::Bold), SetAttribute(Attribute::Reset))
    } else {
        text.into()
    }
}

/// What the parts of a bar are, as far as there is room.
fn legend(colours: bool, columns: usize) -> String {
    let (mut out, mut used) = (String::new(), 0);
    for (category, metric) in LEVEL_1.iter().enumerate() {
        let title = metric.title();
        used += title.len() + 5;
        if used <= columns {
            out += &(block(category, 2, colours) + " " + &title + "  ");
        }
    }
    out
}

/// A part of a bar: of the colour that pages have for it and with its letter, or of letters.
fn block(category: usize, width: usize, colours: bool) -> String {
    let letter = SIGNS[category].to_ascii_lowercase().to_string();
    if !colours {
        return letter.repeat(width);
    }
    let colour = |name: &str| Color::AnsiValue(terminal_colour(&format!("{name}{category}")));
    let text: String = letter.chars().chain(std::iter::repeat(' ')).take(width).collect();
    let (behind, ink) = (SetBackgroundColor(colour("a")), SetForegroundColor(colour("on-a")));
    format!("{behind}{ink}{text}{ResetColor}")
}

fn line(row: &TopRow, columns: usize, colours: bool) -> String {
    let counted = &row.counted;
    let percent = |share: Option<f64>| share.map_or("-".into(), |share| format!("{:.1}", 100.0 * share));
    let number = |number: Option<f64>| number.map_or("-".into(), |number| format!("{number:.2}"));
    let shares = row.shares();
    let share = |k: usize| percent(shares.map(|shares| shares[k]));
    let rate = scaled(counted.slots as f64 * 1e9 / row.length());
    // (a bound is not made smaller)
    let within =
        counted.error(1).map_or("-".into(), |error| format!("{:.1}", (1000.0 * error).ceil() / 10.0));
    // (in the root cgroup is what the CPUs do when nothing runs)
    let has_time = match &row.of {
        SeriesSubject::Cpu { .. } => false,
        SeriesSubject::Cgroup { path, .. } => path != "/",
        _ => true,
    };
    let cpus = has_time.then(|| counted.time_ns as f64 / row.length());
    let mut title = texts::shortened(&title(&row.of), TITLE);
    title += &" ".repeat(TITLE - texts::columns(&title));
    let mut text = String::new();
    let _ = write!(
        text,
        "{title} {rate:>8} {:>5} {:>5} {:>5} {:>5} {within:>6} {:>5} {:>5}  ",
        share(0),
        share(1),
        share(2),
        share(3),
        number(row.ipc),
        number(cpus),
    );
    let mut line: String = text.chars().take(columns).collect();
    if let (Some(shares), Some(room)) = (shares, columns.checked_sub(BEFORE).filter(|room| *room >= 8)) {
        line += &bar(&shares, room.min(100), colours);
    }
    line
}

/// Short, for a narrow column.
fn title(of: &SeriesSubject) -> String {
    match of {
        SeriesSubject::Process { pid: id, name } | SeriesSubject::Thread { tid: id, name } => {
            clean(&format!("{id} {name}"))
        }
        _ => of.title(),
    }
}

/// So many columns, of which each part has its share.
fn bar(shares: &[f64; 4], columns: usize, colours: bool) -> String {
    let (mut sum, mut drawn, mut out) = (0.0, 0, String::new());
    for (category, share) in shares.iter().enumerate() {
        sum += share;
        let end = ((sum * columns as f64).round() as usize).min(columns);
        out += &block(category, end.saturating_sub(drawn), colours);
        drawn = drawn.max(end);
    }
    out
}

/// 1.23 G.
fn scaled(value: f64) -> String {
    let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    match units.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) => format!("{:.2}{name}", value / unit),
        None => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_there_is_room_whatever_is_rounded() {
        for shares in
            [[0.25; 4], [1.0, 0.0, 0.0, 0.0], [0.333, 0.333, 0.333, 0.001], [0.0, 0.0, 0.004, 0.996]]
        {
            for columns in 8..40 {
                let letters = bar(&shares, columns, false);
                assert_eq!(letters.len(), columns, "{shares:?}: {letters}");
                let of = letters.matches('r').count() as f64;
                assert!((of - shares[0] * columns as f64).abs() <= 0.5, "{shares:?}: {letters}");
            }
        }
        assert_eq!(bar(&[0.5, 0.25, 0.25, 0.0], 8, false), "rrrrssff");
        let coloured = bar(&[0.5, 0.25, 0.25, 0.0], 8, true);
        let seen: String =
            coloured.split("\x1b[").map(|piece| piece.split_once('m').map_or("", |(_, text)| text)).collect();
        assert_eq!(seen, "r   s f ", "{coloured:?}");
    }

    #[test]
    fn a_page_fits_the_terminal() {
        let view =
            ScreenHead { title: "x".repeat(300), machine: "y".repeat(300), order: Order::Slots, scrolled: 7 };
        for size in [(80, 24), (20, 5), (1, 1), (200, 60)] {
            let page = page(&view, &[], Duration::from_secs(1), size, false);
            assert!(
                page.len() <= size.1.max(1) && page.iter().all(|line| line.chars().count() <= size.0),
                "{page:?}"
            );
        }
        let width = |text: &str| text.chars().count();
        assert_eq!(width(HEAD), TITLE + 9 + 4 * 6 + 7 + 6 + 6 + 2);
    }
}
