// The public interface of `engines/docker/`.
export type { DockerAddress } from './docker-connection.ts'
export { createDockerEngine } from './docker-engine.ts'
export { type DockerHost, dockerHost } from './docker-host.ts'
