// What others may import of `engines/docker/`.
export { dockerHost } from './docker-host.ts'
