//! [pinocchio](real), except that the system calls the programs make are answered on the host by [`host`].
//!
//! The real crate compiles them away there: sysvars always fail and calls do nothing, which would leave out every
//! instruction that reads the clock or the rent, creates a record or calls an owner program. Everything else is
//! re-exported, so the programs run the same code as on chain.

pub use real::*;

/// What the runtime would know.
pub mod host {
    use std::cell::Cell;

    use real::cpi::{CpiAccount, Signer};
    use real::instruction::InstructionView;

    /// Answers a call to another program.
    pub type Call = fn(&InstructionView, &[CpiAccount], &[Signer]);

    thread_local! {
        static SLOT: Cell<u64> = const { Cell::new(0) };
        static CALL: Cell<Option<Call>> = const { Cell::new(None) };
    }

    /// Sets the slot that the clock shows.
    pub fn set_slot(slot: u64) {
        SLOT.set(slot);
    }

    /// Sets what answers calls. Without it they do nothing.
    pub fn set_call(call: Call) {
        CALL.set(Some(call));
    }

    pub(crate) fn slot() -> u64 {
        SLOT.get()
    }

    pub(crate) fn call(instruction: &InstructionView, accounts: &[CpiAccount], signers: &[Signer]) {
        if let Some(call) = CALL.get() {
            call(instruction, accounts, signers);
        }
    }
}

/// As the real module, with a clock and a rent that can be had.
pub mod sysvars {
    pub use real::sysvars::*;

    /// As the real module.
    pub mod clock {
        use std::ops::Deref;

        pub use real::sysvars::clock::*;
        use real::{error::ProgramError, sysvars::Sysvar};

        /// The clock that shows [`crate::host`]'s slot.
        #[derive(Clone, Copy, Debug)]
        pub struct Clock(real::sysvars::clock::Clock);

        impl Sysvar for Clock {
            fn get() -> Result<Self, ProgramError> {
                let mut bytes = [0u64; real::sysvars::clock::Clock::LEN / 8];
                bytes[0] = crate::host::slot();
                // SAFETY: the array has the length and the alignment of the sysvar, all of whose fields are integers.
                Ok(Self(unsafe { *bytes.as_ptr().cast() }))
            }
        }

        impl Deref for Clock {
            type Target = real::sysvars::clock::Clock;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    }

    /// As the real module.
    pub mod rent {
        use std::ops::Deref;

        pub use real::sysvars::rent::*;
        use real::{AccountView, error::ProgramError, sysvars::Sysvar};

        /// The rent at the default price.
        #[derive(Clone, Copy, Debug)]
        pub struct Rent(real::sysvars::rent::Rent);

        impl Rent {
            /// As the real function.
            ///
            /// # Errors
            /// As the real function's.
            pub fn from_account_view(view: &AccountView) -> Result<Self, ProgramError> {
                real::sysvars::rent::Rent::from_account_view(view).map(Self)
            }
        }

        impl Sysvar for Rent {
            fn get() -> Result<Self, ProgramError> {
                real::sysvars::rent::Rent::from_bytes(&DEFAULT_LAMPORTS_PER_BYTE.to_le_bytes()).map(Self)
            }
        }

        impl Deref for Rent {
            type Target = real::sysvars::rent::Rent;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    }
}

/// As the real module, with calls that [`host`] answers.
pub mod cpi {
    pub use real::cpi::*;
    use real::instruction::InstructionView;

    /// As the real function.
    ///
    /// # Safety
    /// As the real function's.
    pub unsafe fn invoke_unchecked(instruction: &InstructionView, accounts: &[CpiAccount]) {
        crate::host::call(instruction, accounts, &[]);
    }

    /// As the real function.
    ///
    /// # Safety
    /// As the real function's.
    pub unsafe fn invoke_signed_unchecked(
        instruction: &InstructionView,
        accounts: &[CpiAccount],
        signers: &[Signer],
    ) {
        crate::host::call(instruction, accounts, signers);
    }
}
