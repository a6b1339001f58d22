//! Reading numbers off an input. Past its end everything is zero, so short inputs are as good as long ones.

/// The part of an input that has not been read.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next `len` bytes, or as many as there are.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next two bytes, little endian, as all numbers.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let bytes = self.bytes(N);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }

    /// A length-prefixed slice, as instruction data has it, or `None` if it is cut off.
    pub fn slice(&mut self) -> Option<&'a [u8]> {
        let len = self.u32() as usize;
        let bytes = self.bytes(len);
        (bytes.len() == len).then_some(bytes)
    }
}
