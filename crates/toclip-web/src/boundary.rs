//! Bytes in and out of WebAssembly.
//!
//! The page reserves memory, writes its question there and passes it on. It gets an address and a length in
//! one number, to be read and released.

/// Memory for `len` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(len: usize) -> *mut u8 {
    Box::leak(vec![0u8; len].into_boxed_slice()).as_mut_ptr()
}

/// Gives memory back.
///
/// # Safety
/// `at` and `len` must come from [`reserve`], [`ask`] or [`read_file`], and be released once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(at: *mut u8, len: usize) {
    // SAFETY: the caller got both from this module, which leaked a box of that length.
    drop(unsafe { take(at, len) });
}

/// The answer to a question in UTF-8, which is released.
///
/// # Safety
/// As [`release`], for the question.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ask(at: *mut u8, len: usize) -> u64 {
    // SAFETY: the caller's promise.
    let question = unsafe { take(at, len) };
    give(crate::answer(&String::from_utf8_lossy(&question)))
}

/// The content of a file as JSON. The bytes are released.
///
/// # Safety
/// As [`release`], for the bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read_file(at: *mut u8, len: usize) -> u64 {
    // SAFETY: the caller's promise.
    give(crate::read_dropped_file(&unsafe { take(at, len) }))
}

unsafe fn take(at: *mut u8, len: usize) -> Box<[u8]> {
    // SAFETY: `at` and `len` are those of a leaked box.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, len)) }
}

fn give(text: String) -> u64 {
    let bytes = Box::leak(text.into_bytes().into_boxed_slice());
    (bytes.as_mut_ptr() as usize as u64) << 32 | bytes.len() as u64
}
