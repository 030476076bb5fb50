"""Authentication, encryption and authorisation."""

from broker.config.setting import PER_BROKER, boolean, integer, long, password, string, strings


class SecuritySettings:
    sasl_enabled_mechanisms = strings(
        ("GSSAPI",), "The SASL mechanisms that clients may authenticate by.", update_mode=PER_BROKER
    )
    sasl_mechanism_inter_broker_protocol = string(
        "GSSAPI", "The SASL mechanism that brokers authenticate to one another by.", update_mode=PER_BROKER
    )
    sasl_jaas_config = password(
        "The login module and its options, users and passwords included, in the form of a JAAS file.",
        update_mode=PER_BROKER,
    )
    sasl_server_max_receive_size = integer(524288, "The largest message that is read before a client is authenticated.")
    connections_max_reauth_ms = long(
        0, "How long a client stays authenticated until it must do so again; 0 is for as long as it is connected."
    )

    ssl_client_auth = string(
        "none",
        "Whether clients must, may or need not show a certificate.",
        one_of=("required", "requested", "none"),
        update_mode=PER_BROKER,
    )
    ssl_keystore_type = string("JKS", "The format of the key store.", update_mode=PER_BROKER)
    ssl_keystore_location = string(None, "The file with the broker's key and certificate.", update_mode=PER_BROKER)
    ssl_keystore_password = password("The password of the key store.", update_mode=PER_BROKER)
    ssl_keystore_key = password("The broker's private key itself, as PEM.", update_mode=PER_BROKER)
    ssl_keystore_certificate_chain = password("The broker's certificates themselves, as PEM.", update_mode=PER_BROKER)
    ssl_key_password = password("The password of the private key.", update_mode=PER_BROKER)
    ssl_truststore_type = string("JKS", "The format of the trust store.", update_mode=PER_BROKER)
    ssl_truststore_location = string(None, "The file with the certificates that are trusted.", update_mode=PER_BROKER)
    ssl_truststore_password = password("The password of the trust store.", update_mode=PER_BROKER)
    ssl_truststore_certificates = password("The trusted certificates themselves, as PEM.", update_mode=PER_BROKER)
    ssl_enabled_protocols = strings(
        ("TLSv1.2", "TLSv1.3"), "The versions of TLS that are spoken.", update_mode=PER_BROKER
    )
    ssl_cipher_suites = strings((), "The cipher suites that are allowed; none means all.", update_mode=PER_BROKER)
    ssl_principal_mapping_rules = string("DEFAULT", "How a certificate's name becomes a user's name.")

    authorizer_class_name = string("", "The authorizer; without one, everybody may do everything.")
    super_users = string("", "Users who may do everything, as User:name pairs separated by semicolons.")
    allow_everyone_if_no_acl_found = boolean(False, "Whether what no rule speaks of is allowed to everybody.")
