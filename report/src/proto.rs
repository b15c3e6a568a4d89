//! Messages of protocol buffers, in the wire format of the crate prost. (Its derive macro would bring a second version of syn into the
//! tree.)
#![forbid(unsafe_code)]

use prost::encoding::{self, WireType};

/// A message under way: its encoded fields.
#[derive(Debug, Default)]
pub struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    /// With a number.
    pub fn number(mut self, tag: u32, value: u64) -> ProtoMessage {
        encoding::uint64::encode(tag, &value, &mut self.0);
        self
    }

    /// With whole numbers in one field (of a negative one the 64 bits).
    pub fn numbers(mut self, tag: u32, values: &[u64]) -> ProtoMessage {
        encoding::uint64::encode_packed(tag, values, &mut self.0);
        self
    }

    /// With a floating-point number.
    pub fn double(mut self, tag: u32, value: f64) -> ProtoMessage {
        encoding::double::encode(tag, &value, &mut self.0);
        self
    }

    /// With a text, or a message.
    pub fn with(mut self, tag: u32, within: impl AsRef<[u8]>) -> ProtoMessage {
        self.push(tag, within);
        self
    }

    /// Adds a text, or a message.
    pub fn push(&mut self, tag: u32, within: impl AsRef<[u8]>) {
        encoding::encode_key(tag, WireType::LengthDelimited, &mut self.0);
        encoding::encode_varint(within.as_ref().len() as u64, &mut self.0);
        self.0.extend_from_slice(within.as_ref());
    }

    /// The bytes of the message.
    pub fn bytes(self) -> Vec<u8> {
        self.0
    }
}

impl AsRef<[u8]> for ProtoMessage {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
