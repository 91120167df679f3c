// The public interface of `engines/process/`.
export { createProcessEngine } from './process-engine.ts'
