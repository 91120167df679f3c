// The queue of connections that the kernel has opened and a service has not accepted yet.

/**
 * The maximum number of connections that wait to be accepted; the kernel may have a lower one (`net.core.somaxconn`). With
 * Node's 511, a client that opens thousands at once fills the queue, and the kernel drops the first packets of all others,
 * who repeat them only after a second.
 */
export const listenBacklog = 4_096
