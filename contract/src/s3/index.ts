// A client of S3 servers, for tenants' files and for backups. It is not part of the contract's main module, because the SDK takes
// long to load.
export * from './connection.ts'
export * from './objects.ts'
export * from './read.ts'
export * from './upload.ts'
