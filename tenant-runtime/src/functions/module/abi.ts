// What a module and its host agree on; shared by the check at deploy and the executor's process.

export const pageBytes = 65_536

/** Where a module finds its memory, once `importMemory` has been at it. */
export const memoryImport = { module: 'tenantry', name: 'memory' } as const

/**
 * What a function may import: WASI preview 1, whole, so that every toolchain's output loads. Most of it has nothing to
 * act on here (there is no filesystem and no network) and answers so.
 */
export const wasiModule = 'wasi_snapshot_preview1'

export const wasiNames = [
  'args_get', 'args_sizes_get', 'environ_get', 'environ_sizes_get', 'clock_res_get', 'clock_time_get', 'fd_advise',
  'fd_allocate', 'fd_close', 'fd_datasync', 'fd_fdstat_get', 'fd_fdstat_set_flags', 'fd_fdstat_set_rights',
  'fd_filestat_get', 'fd_filestat_set_size', 'fd_filestat_set_times', 'fd_pread', 'fd_prestat_get',
  'fd_prestat_dir_name', 'fd_pwrite', 'fd_read', 'fd_readdir', 'fd_renumber', 'fd_seek', 'fd_sync', 'fd_tell',
  'fd_write', 'path_create_directory', 'path_filestat_get', 'path_filestat_set_times', 'path_link', 'path_open',
  'path_readlink', 'path_remove_directory', 'path_rename', 'path_symlink', 'path_unlink_file', 'poll_oneoff',
  'proc_exit', 'proc_raise', 'sched_yield', 'random_get', 'sock_accept', 'sock_recv', 'sock_send', 'sock_shutdown',
] as const
export type WasiName = (typeof wasiNames)[number]
