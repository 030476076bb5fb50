"""Authentication, encryption and authorization."""

from barnabas.broker.config.setting import (
    PER_BROKER,
    Setting,
    boolean,
    integer,
    long,
    password,
    string,
    strings,
)
from barnabas.broker.config.values import ConfigType, Text


class SecuritySettings:
    sasl_enabled_mechanisms = strings(
        ("GSSAPI",), "The SASL mechanisms that clients may use to authenticate.", update_mode=PER_BROKER
    )
    sasl_mechanism_inter_broker_protocol = string(
        "GSSAPI", "The SASL mechanism that brokers use to authenticate to each other.", update_mode=PER_BROKER
    )
    sasl_jaas_config = password(
        "The login module and its options, including users and passwords, in the format of a JAAS file. It is set for "
        "one listener and one mechanism.",
        update_mode=PER_BROKER,
    )
    sasl_server_max_receive_size = integer(524288, "The largest message that is read before a client is authenticated.")
    connections_max_reauth_ms = long(
        0,
        "How long a client stays authenticated before it must authenticate again; 0 means as long as it is connected.",
    )

    sasl_server_callback_handler_class: Setting[str | None] = Setting(
        Text(ConfigType.CLASS),
        None,
        "For OAUTHBEARER, which of Kafka's two handlers checks tokens: the validating one, or the unsecured one.",
    )
    sasl_oauthbearer_jwks_endpoint_url = string(
        None, "Where the public keys for the signatures of tokens are: a file:// or https:// URL of a JSON Web Key Set."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms = long(3600000, "How often the keys at a URL are fetched again.")
    sasl_oauthbearer_expected_audience = strings((), "The audiences of which a token must have one.")
    sasl_oauthbearer_expected_issuer = string(None, "The issuer that tokens must have.")
    sasl_oauthbearer_clock_skew_seconds = integer(30, "How far the clock of an issuer may be from the broker's.")
    sasl_oauthbearer_scope_claim_name = string("scope", "The claim of a token that has its scope.")
    sasl_oauthbearer_sub_claim_name = string("sub", "The claim of a token that becomes the user's name.")

    sasl_oauthbearer_token_endpoint_url = string(
        None, "Where the token is by which brokers log in to each other: a file:// URL."
    )

    ssl_client_auth = string(
        "none",
        "Whether clients must, may or need not present a certificate.",
        one_of=("required", "requested", "none"),
        update_mode=PER_BROKER,
    )
    ssl_keystore_type = string(
        "JKS", "The format of the key store: PEM, or PKCS12, which is also read as JKS.", update_mode=PER_BROKER
    )
    ssl_keystore_location = string(None, "The file with the broker's key and certificate.", update_mode=PER_BROKER)
    ssl_keystore_password = password("The password of the key store.", update_mode=PER_BROKER)
    ssl_keystore_key = password("The broker's private key, as PEM.", update_mode=PER_BROKER)
    ssl_keystore_certificate_chain = password("The broker's certificates, as PEM.", update_mode=PER_BROKER)
    ssl_key_password = password("The password of the private key.", update_mode=PER_BROKER)
    ssl_truststore_type = string(
        "JKS", "The format of the trust store: PEM, or PKCS12, which is also read as JKS.", update_mode=PER_BROKER
    )
    ssl_truststore_location = string(None, "The file with the trusted certificates.", update_mode=PER_BROKER)
    ssl_truststore_password = password("The password of the trust store.", update_mode=PER_BROKER)
    ssl_truststore_certificates = password("The trusted certificates, as PEM.", update_mode=PER_BROKER)
    ssl_enabled_protocols = strings(
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS that are enabled.",
        update_mode=PER_BROKER,
    )
    ssl_cipher_suites = strings(
        (), "The cipher suites that are allowed; an empty list allows all.", update_mode=PER_BROKER
    )
    ssl_endpoint_identification_algorithm = string(
        "https",
        "Whether a broker checks that another one's certificate has the name of its host (https) or not (empty).",
        update_mode=PER_BROKER,
    )
    ssl_principal_mapping_rules = string("DEFAULT", "How the name in a certificate becomes a user name.")

    authorizer_class_name = string(
        "",
        "The authorizer, which checks access rules: Kafka's StandardAuthorizer, or its older AclAuthorizer, which are "
        "the same here. Without one, everybody may do everything.",
    )
    super_users = string("", "Users who may do everything, as User:name pairs separated by semicolons.")
    allow_everyone_if_no_acl_found = boolean(
        False, "With an authorizer, whether everybody may do everything to resources that no rule applies to."
    )

    delegation_token_secret_key = password(
        "The key with which delegation tokens are created, the same on every broker. Without it there are no tokens."
    )
    delegation_token_master_key = password("The older name of delegation.token.secret.key.", internal=True)
    delegation_token_expiry_time_ms = long(
        86400000, "How long a delegation token is valid before it has to be renewed.", at_least=1
    )
    delegation_token_max_lifetime_ms = long(
        604800000, "Until how long after its creation a delegation token can be renewed.", at_least=1
    )
    delegation_token_expiry_check_interval_ms = long(
        3600000, "How often delegation tokens that are no longer valid are removed.", at_least=1
    )
