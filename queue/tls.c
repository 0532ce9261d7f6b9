#include "queue/tls.h"

#ifdef QUEUE_TLS
#include <arpa/inet.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>

/* One for the process: what it trusts does not change. */
static SSL_CTX *context;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *fault; /* why there is none */

static void make_context(void)
{
    const char *file = getenv("TRANSCODE_REDIS_CA");
    redisInitOpenSSL();
    context = SSL_CTX_new(TLS_client_method());
    if (!context)
        fault = "OpenSSL gives no context";
    else if (file && *file ? SSL_CTX_load_verify_locations(context, file, NULL) != 1
                           : SSL_CTX_set_default_verify_paths(context) != 1)
        fault = "the certificates of TRANSCODE_REDIS_CA cannot be read";
    else
        SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

static int expect_host(SSL *ssl, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    bool is_address =
        inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    if (is_address)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
    return SSL_set_tlsext_host_name(ssl, host) && SSL_set1_host(ssl, host);
}

int tls_start(redisContext *c, const char *host, struct err *e)
{
    pthread_once(&once, make_context);
    if (fault)
        return err_set(e, ERR_CONFIG, "TLS: %s", fault);
    SSL *ssl = SSL_new(context);
    if (!ssl || expect_host(ssl, host) != 1) {
        SSL_free(ssl);
        return err_set(e, ERR_RESOURCE, "TLS: %s: no session", host);
    }
    if (redisInitiateSSL(c, ssl) == REDIS_OK) /* owns ssl from here on */
        return 0;
    long verdict = SSL_get_verify_result(ssl);
    int r = verdict != X509_V_OK ? err_set(e, ERR_CONFIG, "TLS: %s: %s", host,
                                           X509_verify_cert_error_string(verdict))
                                 : err_set(e, ERR_TRANSIENT, "TLS: %s: %s", host, c->errstr);
    SSL_free(ssl);
    return r;
}
#else
int tls_start(redisContext *c, const char *host, struct err *e)
{
    (void)c;
    return err_set(
        e, ERR_CONFIG,
        "TLS: %s: this program was built without it: build it with hiredis 1.0 or later, "
        "its hiredis_ssl, and OpenSSL",
        host);
}
#endif
