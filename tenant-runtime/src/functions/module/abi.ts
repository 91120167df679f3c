// The interface between a module and its host, for the check at deployment and the executor's process.

export const pageBytes = 65_536

/** The module of the host's own functions (docs/functions.md, "Host calls"). */
export const hostModule = 'tenantry'

/** The import by which a module receives its memory after `importMemory`. */
export const memoryImport = { module: hostModule, name: 'memory' } as const

/**
 * The module of WASI preview 1. All of its functions can be imported, so that the output of every toolchain loads. Those for
 * files and the network return an error.
 */
export const wasiModule = 'wasi_snapshot_preview1'

/** Signatures of the WASI functions: parameters and results, `i` for i32 and `I` for i64. */
export const wasiFunctions = {
  args_get: 'ii:i',
  args_sizes_get: 'ii:i',
  environ_get: 'ii:i',
  environ_sizes_get: 'ii:i',
  clock_res_get: 'ii:i',
  clock_time_get: 'iIi:i',
  fd_advise: 'iIIi:i',
  fd_allocate: 'iII:i',
  fd_close: 'i:i',
  fd_datasync: 'i:i',
  fd_fdstat_get: 'ii:i',
  fd_fdstat_set_flags: 'ii:i',
  fd_fdstat_set_rights: 'iII:i',
  fd_filestat_get: 'ii:i',
  fd_filestat_set_size: 'iI:i',
  fd_filestat_set_times: 'iIIi:i',
  fd_pread: 'iiiIi:i',
  fd_prestat_get: 'ii:i',
  fd_prestat_dir_name: 'iii:i',
  fd_pwrite: 'iiiIi:i',
  fd_read: 'iiii:i',
  fd_readdir: 'iiiIi:i',
  fd_renumber: 'ii:i',
  fd_seek: 'iIii:i',
  fd_sync: 'i:i',
  fd_tell: 'ii:i',
  fd_write: 'iiii:i',
  path_create_directory: 'iii:i',
  path_filestat_get: 'iiiii:i',
  path_filestat_set_times: 'iiiiIIi:i',
  path_link: 'iiiiiii:i',
  path_open: 'iiiiiIIii:i',
  path_readlink: 'iiiiii:i',
  path_remove_directory: 'iii:i',
  path_rename: 'iiiiii:i',
  path_symlink: 'iiiii:i',
  path_unlink_file: 'iii:i',
  poll_oneoff: 'iiii:i',
  proc_exit: 'i:',
  proc_raise: 'i:i',
  sched_yield: ':i',
  random_get: 'ii:i',
  sock_accept: 'iii:i',
  sock_recv: 'iiiiii:i',
  sock_send: 'iiiii:i',
  sock_shutdown: 'ii:i',
} as const
export type WasiName = keyof typeof wasiFunctions
export const wasiNames = Object.keys(wasiFunctions) as readonly WasiName[]

/** The signature of a function of the host, whose parameters and results are all i32. */
export interface HostFunction {
  parameters: number
  results: number
  /** Whether a call can have effects outside of the executor. */
  reachesOut: boolean
}

/** The host's own functions, in `hostModule`. `take` copies the result of the call before. */
export const hostFunctions: Readonly<Record<string, HostFunction>> = {
  log: { parameters: 3, results: 0, reachesOut: false },
  env: { parameters: 2, results: 1, reachesOut: false },
  db_query: { parameters: 4, results: 1, reachesOut: true },
  storage_get: { parameters: 2, results: 1, reachesOut: true },
  storage_put: { parameters: 6, results: 1, reachesOut: true },
  storage_delete: { parameters: 2, results: 1, reachesOut: true },
  http_fetch: { parameters: 4, results: 1, reachesOut: true },
  take: { parameters: 2, results: 1, reachesOut: false },
}
