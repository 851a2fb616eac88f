/*
 * In place of libtls, which is not here: no context can be made, so nothing else is ever called.
 * nc.c refuses the options for TLS before.
 */
#ifndef NETCAT_TLS_H
#define NETCAT_TLS_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TLS_PROTOCOLS_ALL 0
#define TLS_WANT_POLLIN -2
#define TLS_WANT_POLLOUT -3
#define TLS_OCSP_RESPONSE_SUCCESSFUL 0

struct tls;
struct tls_config;

#define NETCAT_NEVER(type, name, ...) \
	static inline type name(__VA_ARGS__) { abort(); }

/* Called with NULL, whether TLS is used or not. */
static inline void tls_config_free(struct tls_config *config) { (void)config; }
static inline void tls_free(struct tls *context) { (void)context; }

static inline const char *tls_default_ca_cert_file(void) { return ""; }

NETCAT_NEVER(struct tls_config *, tls_config_new, void)
NETCAT_NEVER(const char *, tls_config_error, struct tls_config *config)
NETCAT_NEVER(int, tls_config_parse_protocols, uint32_t *protocols, const char *text)
NETCAT_NEVER(int, tls_config_set_protocols, struct tls_config *config, uint32_t protocols)
NETCAT_NEVER(int, tls_config_set_ciphers, struct tls_config *config, const char *text)
NETCAT_NEVER(int, tls_config_set_alpn, struct tls_config *config, const char *text)
NETCAT_NEVER(int, tls_config_set_ca_file, struct tls_config *config, const char *file)
NETCAT_NEVER(int, tls_config_set_cert_file, struct tls_config *config, const char *file)
NETCAT_NEVER(int, tls_config_set_key_file, struct tls_config *config, const char *file)
NETCAT_NEVER(int, tls_config_set_ocsp_staple_file, struct tls_config *config, const char *file)
NETCAT_NEVER(void, tls_config_insecure_noverifycert, struct tls_config *config)
NETCAT_NEVER(void, tls_config_insecure_noverifyname, struct tls_config *config)
NETCAT_NEVER(void, tls_config_ocsp_require_stapling, struct tls_config *config)
NETCAT_NEVER(void, tls_config_verify_client_optional, struct tls_config *config)
NETCAT_NEVER(struct tls *, tls_client, void)
NETCAT_NEVER(struct tls *, tls_server, void)
NETCAT_NEVER(int, tls_configure, struct tls *context, struct tls_config *config)
NETCAT_NEVER(const char *, tls_error, struct tls *context)
NETCAT_NEVER(int, tls_accept_socket, struct tls *context, struct tls **client, int socket)
NETCAT_NEVER(int, tls_connect_socket, struct tls *context, int socket, const char *name)
NETCAT_NEVER(int, tls_handshake, struct tls *context)
NETCAT_NEVER(int, tls_close, struct tls *context)
NETCAT_NEVER(ssize_t, tls_read, struct tls *context, void *data, size_t size)
NETCAT_NEVER(ssize_t, tls_write, struct tls *context, const void *data, size_t size)
NETCAT_NEVER(const char *, tls_conn_version, struct tls *context)
NETCAT_NEVER(const char *, tls_conn_cipher, struct tls *context)
NETCAT_NEVER(const char *, tls_conn_alpn_selected, struct tls *context)
NETCAT_NEVER(int, tls_peer_cert_provided, struct tls *context)
NETCAT_NEVER(int, tls_peer_cert_contains_name, struct tls *context, const char *name)
NETCAT_NEVER(const char *, tls_peer_cert_hash, struct tls *context)
NETCAT_NEVER(const char *, tls_peer_cert_issuer, struct tls *context)
NETCAT_NEVER(const char *, tls_peer_cert_subject, struct tls *context)
NETCAT_NEVER(time_t, tls_peer_cert_notbefore, struct tls *context)
NETCAT_NEVER(time_t, tls_peer_cert_notafter, struct tls *context)
NETCAT_NEVER(const uint8_t *, tls_peer_cert_chain_pem, struct tls *context, size_t *size)
NETCAT_NEVER(const char *, tls_peer_ocsp_url, struct tls *context)
NETCAT_NEVER(int, tls_peer_ocsp_response_status, struct tls *context)
NETCAT_NEVER(int, tls_peer_ocsp_cert_status, struct tls *context)
NETCAT_NEVER(int, tls_peer_ocsp_crl_reason, struct tls *context)
NETCAT_NEVER(const char *, tls_peer_ocsp_result, struct tls *context)
NETCAT_NEVER(time_t, tls_peer_ocsp_next_update, struct tls *context)
NETCAT_NEVER(time_t, tls_peer_ocsp_revocation_time, struct tls *context)
NETCAT_NEVER(time_t, tls_peer_ocsp_this_update, struct tls *context)

#endif
