#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    programs_fuzz::patch::check(input);
});
