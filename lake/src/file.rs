//! Rows as a Parquet file, which is written in parts: a large one is never whole in memory.

use crate::rows::{self, Row};
use parquet::basic::{Compression, Repetition, Type as Physical};
use parquet::basic::{LogicalType, TimeUnit};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use topdown_report::Report;

/// Rows of a row group: engines read some hundred thousand at once.
const GROUP: usize = 100_000;

/// The values of a column that are not written yet; of those that may be null, which are.
enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
}

struct Column {
    name: &'static str,
    values: Values,
    /// 1: there is a value, 0: null.
    there: Vec<i16>,
}

/// What a row has in a column.
enum Cell<'r> {
    Text(Option<&'r str>),
    Integer(Option<i64>),
    Number(Option<f64>),
}

/// The columns of a row, in order: what docs/lake.md lists.
fn cells<'r>(row: &'r Row) -> [(&'static str, Cell<'r>); COLUMNS] {
    fn text(of: &Option<String>) -> Cell<'_> {
        Cell::Text(of.as_deref())
    }
    let of = row.of;
    [
        ("host", text(&of.host)),
        ("rank", text(&of.rank)),
        ("command", text(&of.command)),
        (STARTED, Cell::Integer(of.started_unix_ns.map(|ns| ns / 1000))),
        ("pid", Cell::Integer(of.pid)),
        ("parent_pid", Cell::Integer(of.parent_pid)),
        ("ended", text(&of.ended)),
        ("tid", Cell::Integer(of.tid)),
        ("thread", text(&of.thread)),
        ("region", text(&of.region)),
        ("what", Cell::Text(Some(of.what))),
        ("part", Cell::Text(Some(of.part))),
        ("core", text(&of.core)),
        ("cpu", text(&of.cpu)),
        ("path", text(&of.path)),
        ("cpu_number", Cell::Integer(of.cpu_number)),
        ("cgroup", text(&of.cgroup)),
        ("begin_ns", Cell::Integer(of.begin_ns)),
        ("end_ns", Cell::Integer(of.end_ns)),
        ("executions", Cell::Integer(of.executions)),
        ("time_ns", Cell::Integer(of.time_ns)),
        ("wall_ns", Cell::Integer(of.wall_ns)),
        ("node", Cell::Text(Some(row.node))),
        ("level", Cell::Integer(Some(row.level))),
        ("parent", Cell::Text(row.parent)),
        ("unit", Cell::Text(Some(row.unit))),
        ("total", Cell::Number(row.total)),
        ("slots", Cell::Number(row.slots)),
        ("low", Cell::Number(row.low)),
        ("high", Cell::Number(row.high)),
    ]
}

const COLUMNS: usize = 30;
/// The column that is a time: in microseconds, since Spark knows no others.
const STARTED: &str = "started";

impl Column {
    fn new(name: &'static str, cell: &Cell) -> Column {
        let values = match cell {
            Cell::Text(_) => Values::Text(Vec::new()),
            Cell::Integer(_) => Values::Integer(Vec::new()),
            Cell::Number(_) => Values::Number(Vec::new()),
        };
        Column { name, values, there: Vec::new() }
    }

    fn push(&mut self, cell: &Cell) {
        let there = match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(Some(text))) => {
                // (rows of one subject have it in common)
                let same = values.last().filter(|last| last.data() == text.as_bytes()).cloned();
                values.push(same.unwrap_or_else(|| ByteArray::from(*text)));
                true
            }
            (Values::Integer(values), Cell::Integer(Some(number))) => {
                values.push(*number);
                true
            }
            (Values::Number(values), Cell::Number(Some(number))) => {
                values.push(*number);
                true
            }
            _ => false,
        };
        self.there.push(there.into());
    }

    fn schema(&self) -> Result<TypePtr, ParquetError> {
        let (kind, logical) = match (&self.values, self.name) {
            (Values::Text(_), _) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            (Values::Integer(_), STARTED) => {
                (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS)))
            }
            (Values::Integer(_), _) => (Physical::INT64, None),
            (Values::Number(_), _) => (Physical::DOUBLE, None),
        };
        let column = Type::primitive_type_builder(self.name, kind).with_repetition(Repetition::OPTIONAL);
        Ok(Arc::new(column.with_logical_type(logical).build()?))
    }
}

/// Bytes on the way: the writer of the crate wants to own what it writes to.
#[derive(Clone, Default)]
struct Made(Arc<Mutex<Vec<u8>>>);

impl Made {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Made {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Table {
    columns: Vec<Column>,
    made: Made,
    writer: SerializedFileWriter<Made>,
}

impl Table {
    fn new() -> Result<Table, ParquetError> {
        let of = rows::Subject::default();
        let (number, text) = (None, "");
        let row = Row {
            of: &of,
            node: text,
            level: 0,
            parent: None,
            unit: text,
            total: number,
            slots: number,
            low: number,
            high: number,
        };
        let columns: Vec<Column> = cells(&row).iter().map(|(name, cell)| Column::new(name, cell)).collect();
        let fields = columns.iter().map(Column::schema).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("topdown").with_fields(fields).build()?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::LZ4_RAW)
            .set_created_by(format!("topdown {}", env!("CARGO_PKG_VERSION")))
            .build();
        let made = Made::default();
        let writer = SerializedFileWriter::new(made.clone(), schema, Arc::new(properties))?;
        Ok(Table { columns, made, writer })
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            let there = Some(column.there.as_slice());
            match &mut column.values {
                Values::Text(values) => {
                    writer.typed::<ByteArrayType>().write_batch(values, there, None)?;
                    values.clear();
                }
                Values::Integer(values) => {
                    writer.typed::<Int64Type>().write_batch(values, there, None)?;
                    values.clear();
                }
                Values::Number(values) => {
                    writer.typed::<DoubleType>().write_batch(values, there, None)?;
                    values.clear();
                }
            }
            column.there.clear();
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    fn rows(&self) -> usize {
        self.columns[0].there.len()
    }
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(format!("cannot make it: {error}"))
}

/// Writes the rows of a report.
///
/// # Errors
/// It cannot be written.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new().map_err(failed)?;
    rows::each(report, &mut |row| {
        for (column, (_, cell)) in table.columns.iter_mut().zip(cells(row)) {
            column.push(&cell);
        }
        if table.rows() == GROUP {
            table.end_group().map_err(failed)?;
            out.write_all(&table.made.take())?;
        }
        Ok(())
    })?;
    if table.rows() > 0 {
        table.end_group().map_err(failed)?;
    }
    let Table { made, writer, .. } = table;
    writer.close().map_err(failed)?;
    out.write_all(&made.take())
}
