// The public interface of `engines/docker/`.
export { dockerHost } from './docker-host.ts'
