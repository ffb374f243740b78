/**
 * Keys of a Sōzu file that mean nothing to a UDP load balancer. They are known, so that a Sōzu file loads unchanged and
 * a misspelt key is still found. Collected from Sōzu's published manual.
 */

/** Listener keys for TCP, HTTP or TLS. Sōzu's listeners share one table, so it takes them on a UDP listener too. */
export const FOREIGN_LISTENER_KEYS: readonly string[] = [
  'expect_proxy',
  'sticky_name',
  'connect_timeout',
  'request_timeout',
  'certificate',
  'certificate_chain',
  'key',
  'tls_versions',
  'tls_provider',
  'cipher_list',
  'cipher_suites',
  'rustls_cipher_list',
  'signature_algorithms',
  'groups_list',
  'send_tls13_tickets',
  'alpn_protocols',
  'hsts',
  'strict_sni_binding',
  'disable_http11',
  'elide_x_real_ip',
  'send_x_real_ip',
  'sozu_id_header',
  'answers',
  ...[301, 400, 401, 404, 408, 413, 421, 429, 502, 503, 504, 507].map((code) => `answer_${code}`),
];

/** Frontend keys for HTTP and TLS. Sōzu refuses them where a frontend leads to a TCP or UDP listener, and so do we. */
export const HTTP_FRONTEND_KEYS: readonly string[] = [
  'hostname',
  'path',
  'path_type',
  'method',
  'position',
  'certificate',
  'certificate_chain',
  'key',
  'tls_versions',
];

/** Cluster keys for TCP or HTTP. */
export const FOREIGN_CLUSTER_KEYS: readonly string[] = [
  'send_proxy',
  'sticky_session',
  'https_redirect',
  'https_redirect_port',
  'http2',
  'answers',
  'answer_503',
  'health_check',
  'retry_after',
  'www_authenticate',
  'authorized_hashes',
];

/** Top-level keys that Sōzu knows and that change nothing here. */
export const FOREIGN_GLOBAL_KEYS: readonly string[] = [
  'config_version',
  'command_buffer_size',
  'max_command_buffer_size',
  'saved_state',
  'automatic_state_save',
  'log_colored',
  'log_access_target',
  'access_logs_target',
  'access_logs_format',
  'access_logs_colored',
  'worker_automatic_restart',
  'worker_timeout',
  'handle_process_affinity',
  'ctl_command_timeout',
  'pid_file_path',
  'user',
  'group',
  'min_buffers',
  'max_buffers',
  'slab_entries_per_connection',
  'front_timeout',
  'back_timeout',
  'connect_timeout',
  'request_timeout',
  'zombie_check_interval',
  'accept_queue_timeout',
  'evict_on_queue_full',
  'tls_provider',
  'disable_cluster_metrics',
  'max_connections_per_ip',
  'retry_after',
  'http',
  'https',
  'tcp',
];
