/* The symbol by which readers outside the process find the thread context record of a thread (OTEP 4947).
 * It is C because stable Rust cannot give a thread-local variable an exported name. */

__attribute__((visibility("default"))) __thread void *otel_thread_ctx_v1 = 0;

/* Address of the calling thread's slot. Never null, safe in a signal handler of an executable. */
void **spanflame_thread_slot(void) {
    return &otel_thread_ctx_v1;
}
