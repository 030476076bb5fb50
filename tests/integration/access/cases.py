"""All cases, and a user for each set of rights that a case is asked with."""

from tests.integration.access import admin_cases, data_cases, group_cases, transaction_cases

CASES = data_cases.CASES | group_cases.CASES | admin_cases.CASES | transaction_cases.CASES

USERS = {
    f"u{place}-{number}": rights
    for place, case in enumerate(CASES.values())
    for number, rights in enumerate(case.rights())
}
