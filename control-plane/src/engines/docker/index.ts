// The public interface of `engines/docker/`.
export { createDockerEngine } from './docker-engine.ts'
