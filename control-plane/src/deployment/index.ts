// The public interface of `deployment/`.
export { readPlatformOptions, type PlatformOptions } from './platform-options.ts'
export { platformFiles, type PlatformFile, type StoredFiles } from './platform-files.ts'
