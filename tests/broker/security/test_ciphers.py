import ssl

import pytest

from barnabas.broker.security.ciphers import TLS13, allow_only, openssl_name
from barnabas.broker.security.errors import SecurityError


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE-RSA-AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_java_s_names_are_openssl_s(java, openssl):
    assert openssl_name(java) == openssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(f"{openssl}:@SECLEVEL=0")
    assert openssl in {cipher["name"] for cipher in context.get_ciphers()}


def test_a_version_without_suites_is_off():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    allow_only(context, ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], "ssl.cipher.suites")
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    allow_only(context, TLS13, "ssl.cipher.suites")
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("suites", "complaint"),
    [(["TLS_AES_128_GCM_SHA256"], "can only use all of them or none"), (["NULL_OF_MINE"], "no cipher suite")],
)
def test_unsupported_suites_are_refused(suites, complaint):
    with pytest.raises(SecurityError, match=complaint):
        allow_only(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), suites, "ssl.cipher.suites")
