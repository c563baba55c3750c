// SPDX-License-Identifier: GPL-2.0

//! Appends lines to a log that nobody reads soon, and leaves nothing of it in the page cache.
//!
//! `log FILE LINES`, with no crate but std. `pwritev2()` is libc's.

use std::{
    env,
    ffi::{c_int, c_void},
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    process::ExitCode,
};

const RWF_DONTCACHE: c_int = 0x80;
const RWF_APPEND: c_int = 0x10;
const EOPNOTSUPP: i32 = 95;

#[repr(C)]
struct IoVec {
    base: *const c_void,
    len: usize,
}

extern "C" {
    fn pwritev2(fd: c_int, iov: *const IoVec, count: c_int, offset: i64, flags: c_int) -> isize;
}

/// Writes at the end of `file`, as few bytes as the kernel says.
fn append(file: &File, data: &[u8], flags: c_int) -> io::Result<usize> {
    let iov = IoVec {
        base: data.as_ptr().cast(),
        len: data.len(),
    };
    // SAFETY: `iov` is one vector, of bytes that live as long as the call, and the file is open.
    let written = unsafe { pwritev2(file.as_raw_fd(), &iov, 1, 0, flags | RWF_APPEND) };

    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

/// Appends all of it. Where the flag is not supported, as an ordinary write.
fn append_all(file: &File, mut data: &[u8], flags: &mut c_int) -> io::Result<()> {
    while !data.is_empty() {
        match append(file, data, *flags) {
            Ok(written) => data = &data[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(EOPNOTSUPP) && *flags != 0 => *flags = 0,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn run(path: &str, lines: usize) -> io::Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut flags = RWF_DONTCACHE;

    for nr in 0..lines {
        append_all(&file, format!("line {nr}\n").as_bytes(), &mut flags)?;
    }
    // An error of writeback that the writes have not told is told here.
    file.sync_all()
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().collect();
    let (Some(path), Some(Ok(lines))) = (args.get(1), args.get(2).map(|nr| nr.parse())) else {
        eprintln!("usage: log FILE LINES");
        return ExitCode::from(2);
    };

    match run(path, lines) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {path}: {error}");
            ExitCode::FAILURE
        }
    }
}
