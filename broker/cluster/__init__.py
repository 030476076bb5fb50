"""A broker's part in its cluster: sessions, registration, elections, and a controller's term, which carries out what
`controller` decides."""
