//! The symbols that upstream LLVM's BPF back end expects of the program it links: the C memory functions over Solana's
//! syscalls, and the trap it calls where code cannot be reached. Platform-tools bring their own, so all of this is for
//! the upstream toolchain (`target_arch = "bpf"`) only.
//!
//! A program needs nothing but `use sbf_builtins as _;`.
#![no_std]

#[cfg(all(target_os = "solana", target_arch = "bpf"))]
mod symbols {
    use solana_define_syscall::definitions::{abort, sol_memcmp_, sol_memcpy_, sol_memmove_, sol_memset_};

    /// Where control flow must not arrive.
    #[unsafe(no_mangle)]
    pub extern "C" fn __bpf_trap() -> ! {
        // SAFETY: the syscall takes nothing and does not return.
        unsafe { abort() }
    }

    /// # Safety
    /// As C's `memcpy`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those of the syscall.
        unsafe { sol_memcpy_(to, from, len as u64) };
        to
    }

    /// # Safety
    /// As C's `memmove`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those of the syscall.
        unsafe { sol_memmove_(to, from, len as u64) };
        to
    }

    /// # Safety
    /// As C's `memset`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
        // SAFETY: the caller's promises are those of the syscall.
        unsafe { sol_memset_(to, byte as u8, len as u64) };
        to
    }

    /// # Safety
    /// As C's `memcmp`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
        let mut order = 0;
        // SAFETY: the caller's promises are those of the syscall, and `order` outlives the call.
        unsafe { sol_memcmp_(a, b, len as u64, &mut order) };
        order
    }

    /// # Safety
    /// As BSD's `bcmp`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
        // SAFETY: the same contract.
        unsafe { memcmp(a, b, len) }
    }
}
