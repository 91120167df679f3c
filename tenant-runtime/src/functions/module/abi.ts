// What a module and its host agree on; shared by the check at deploy and the executor's process.

export const pageBytes = 65_536

/** Where a function finds what the host does for it beyond WASI (docs/functions.md, "Host calls"). */
export const hostModule = 'tenantry'

/** Where a module finds its memory, once `importMemory` has been at it. */
export const memoryImport = { module: hostModule, name: 'memory' } as const

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

/** The host's own functions, in `hostModule`: how many parameters and results each has, all of them i32. */
export const hostFunctions: Readonly<Record<string, { parameters: number; results: number }>> = {
  log: { parameters: 3, results: 0 },
  env: { parameters: 2, results: 1 },
  db_query: { parameters: 4, results: 1 },
  storage_get: { parameters: 2, results: 1 },
  storage_put: { parameters: 6, results: 1 },
  storage_delete: { parameters: 2, results: 1 },
  http_fetch: { parameters: 4, results: 1 },
  take: { parameters: 2, results: 1 },
}
