import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.principal import Principal, PrincipalMapper, distinguished_name
from tests.support import certificates


def named(*attributes):
    """A certificate with this subject."""
    import datetime

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(number, value) for number, value in attributes])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def test_a_name_is_written_from_its_end_as_java_does():
    der = x509.load_pem_x509_certificate(certificates.client().certificate).public_bytes(Encoding.DER)
    assert distinguished_name(der) == "CN=alice,OU=people,O=Barnabas development"


def test_a_name_is_escaped_as_java_does():
    """The expected text is what Java 21's X500Principal.getName() prints for the same certificate."""
    certificate = named(
        (NameOID.COUNTRY_NAME, "DE"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Bayern"),
        (NameOID.LOCALITY_NAME, "München"),
        (NameOID.ORGANIZATION_NAME, 'A, "B" + C=D; <x> #y \\z'),
        (NameOID.ORGANIZATIONAL_UNIT_NAME, " #lead trail  "),
        (NameOID.COMMON_NAME, "alice"),
        (NameOID.EMAIL_ADDRESS, "a@b.c"),
        (NameOID.USER_ID, "u1"),
        (NameOID.DOMAIN_COMPONENT, "example"),
        (NameOID.SERIAL_NUMBER, "77"),
        (NameOID.STREET_ADDRESS, "Str"),
        (NameOID.TITLE, "Dr"),
        (NameOID.SURNAME, "Sür"),
    )
    assert distinguished_name(certificate) == (
        "2.5.4.4=#0c0453c3bc72,2.5.4.12=#0c024472,STREET=Str,2.5.4.5=#13023737,DC=example,UID=u1,"
        r"1.2.840.113549.1.9.1=#16056140622e63,CN=alice,OU=\ \#lead trail\ \ ,"
        r"O=A\, \"B\" \+ C\=D\; \<x\> \#y \\z,L=München,ST=Bayern,C=DE"
    )


@pytest.mark.parametrize(
    ("rules", "name", "mapped"),
    [
        ("DEFAULT", "CN=Duke,OU=x", "CN=Duke,OU=x"),
        ("", "CN=Duke", "CN=Duke"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=service,OU=ServiceUsers,O=org", "service"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2/L", "CN=Admin,OU=Users,O=Org", "admin@users"),
        ("RULE:^CN=(.*?)$/$1/U,DEFAULT", "CN=duke", "DUKE"),
        ("RULE:^CN=nobody$/x/ , DEFAULT", "CN=duke", "CN=duke"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", "cn=Duke.X,ou=a", "duke.x"),
        (r"RULE:^CN=(.*)\/(.*)$/$1-$2/", "CN=a/b", "a-b"),
        ("RULE:^CN=(.*)$/$1-$2/", "CN=a", "a-$2"),
        ("RULE:^CN=(.*)$/$1/", "OU=a", None),
    ],
)
def test_rules_map_names_to_users(rules, name, mapped):
    assert PrincipalMapper(rules)(name) == (None if mapped is None else Principal("User", mapped))


@pytest.mark.parametrize("rules", ["RULE:^CN=(.*)$", "RULE:x/y", "DEFAULT,nonsense", "RULE:(/x/", "RULE:^a/b/X"])
def test_rules_that_cannot_be_read_are_refused(rules):
    with pytest.raises(SecurityError, match=r"ssl\.principal\.mapping\.rules has"):
        PrincipalMapper(rules)
